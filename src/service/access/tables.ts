import type { Page } from '../../domain/page.ts';
import type { TenantFilter, Token } from '../../domain/access/principal.ts';
import type { HistoryEntry } from '../../domain/history.ts';

export interface TokenReads {
  get(tokenId: string): Token | null;
  byDigest(digest: string): Token | null;
  list(filter: TenantFilter, page: Page): Token[];
  count(filter: TenantFilter): number;
}
export interface TokenTable extends TokenReads {
  add(token: Token, digest: string): void;
  /** Moves `lastUsedAt` on, never back. */
  setLastUsed(tokenId: string, at: number): void;
  remove(tokenId: string): void;
}

/** Whose API key or secret a credential is: the id of an account, or the key of a product. */
export type CredentialOwner = { kind: 'api_key' | 'product_secret'; id: string };
/** A credential that was rolled, and goes on until an instant (epoch ms). */
export type OldCredential = CredentialOwner & { until: number };
export interface OldCredentialReads {
  /** Also one that has stopped, as long as it was not pruned. */
  byDigest(kind: CredentialOwner['kind'], digest: string): OldCredential | null;
}
export interface OldCredentialTable extends OldCredentialReads {
  /** Replaces the one that the owner had. */
  put(old: OldCredential, digest: string): void;
  remove(owner: CredentialOwner): void;
  /** Removes those that went on until an instant or an earlier one. */
  prune(before: number): void;
}

/** The stored answer of a write under an idempotency key. */
export type StoredResponse = { fingerprint: string; value: unknown };
export interface IdempotencyReads {
  get(credential: string, key: string): StoredResponse | null;
  /** How many answers to changes that changed nothing are stored for a credential. */
  unchangedCount(credential: string): number;
}
export interface IdempotencyTable extends IdempotencyReads {
  put(credential: string, key: string, record: StoredResponse & { at: number; unchanged: boolean }): void;
  /** Replaces an answer; whether its change changed nothing stays as it was. */
  replace(credential: string, key: string, record: StoredResponse & { at: number }): void;
  remove(credential: string, key: string): void;
  /** Dates at most so many that lie in the future to `now`; returns how many there were. */
  bringBack(now: number, limit: number): number;
  /** Removes at most so many from before an instant; gives how many there were. */
  prune(before: number, limit: number): number;
}

/** One act of a person, for ever. */
export type AuditEntry = { at: number; actor: string; act: string; subject: string; detail: string };
/** An act on record, with its number. */
export type RecordedAct = AuditEntry & { id: number };
/** Undefined members do not filter. */
export type AuditFilter = {
  /** Epoch ms: acts of this instant and later ones. */
  since?: number | undefined;
  /** Epoch ms: acts before this instant. */
  until?: number | undefined;
  actor?: string | undefined;
  act?: string | undefined;
  subject?: string | undefined;
};
export interface AuditReads {
  get(id: number): RecordedAct | null;
  /** The latest first. */
  list(filter: AuditFilter, page: Page): RecordedAct[];
  count(filter: AuditFilter): number;
}
export interface AuditTable extends AuditReads {
  add(entry: AuditEntry): void;
}

/** A stretch of the changes since an instant (epoch ms) that is included; undefined: of all. */
export type HistoryPage = Page & { since?: number | undefined };
/** A change with its number among those of its key. */
export type ListedChange = HistoryEntry & { number: number };
export interface HistoryReads {
  /** The latest first. */
  list(licenseKey: string, page: HistoryPage): ListedChange[];
  count(licenseKey: string, since?: number): number;
}
export interface HistoryTable extends HistoryReads {
  /** Adds a change; of those before, only the last ones of the key are kept. */
  add(change: HistoryEntry): void;
  /** What happened under one spelling of a license key happened under another. */
  respell(from: string, to: string): void;
  /** Removes at most so many from before an instant; gives how many there were. */
  prune(before: number, limit: number): number;
}
