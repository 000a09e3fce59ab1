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
  /** Never moves `lastUsedAt` back. */
  setLastUsed(tokenId: string, at: number): void;
  remove(tokenId: string): void;
}

/** `id`: the id of an account, or the key of a product. */
export type CredentialOwner = { kind: 'api_key' | 'product_secret'; id: string };
/** A replaced credential that stays valid until an instant (epoch ms). */
export type OldCredential = CredentialOwner & { until: number };
export interface OldCredentialReads {
  /** Also returns an expired credential until it is pruned. */
  byDigest(kind: CredentialOwner['kind'], digest: string): OldCredential | null;
}
export interface OldCredentialTable extends OldCredentialReads {
  /** Replaces the old credential that the owner has. */
  put(old: OldCredential, digest: string): void;
  remove(owner: CredentialOwner): void;
  /** Removes credentials that ended at this instant or earlier. */
  prune(before: number): void;
}

export type StoredResponse = { fingerprint: string; value: unknown };
export interface IdempotencyReads {
  get(credential: string, key: string): StoredResponse | null;
  /** How many responses are stored for requests of a credential that changed nothing. */
  unchangedCount(credential: string): number;
}
export interface IdempotencyTable extends IdempotencyReads {
  put(credential: string, key: string, record: StoredResponse & { at: number; unchanged: boolean }): void;
  /** Replaces a response, but not its `unchanged`. */
  replace(credential: string, key: string, record: StoredResponse & { at: number }): void;
  remove(credential: string, key: string): void;
  /** Sets the date of up to `limit` responses from the future to `now`; returns how many. */
  clampToNow(now: number, limit: number): number;
  /** Removes up to `limit` from before an instant; returns how many. */
  prune(before: number, limit: number): number;
}

/** Audit entries are kept for ever. */
export type AuditEntry = { at: number; actor: string; act: string; subject: string; detail: string };
export type RecordedAct = AuditEntry & { id: number };
/** Undefined members do not filter. */
export type AuditFilter = {
  /** Epoch ms, included. */
  since?: number | undefined;
  /** Epoch ms, excluded. */
  until?: number | undefined;
  actor?: string | undefined;
  act?: string | undefined;
  subject?: string | undefined;
};
export interface AuditReads {
  get(id: number): RecordedAct | null;
  /** Latest first. */
  list(filter: AuditFilter, page: Page): RecordedAct[];
  count(filter: AuditFilter): number;
}
export interface AuditTable extends AuditReads {
  add(entry: AuditEntry): void;
}

/** `since`: epoch ms, included; undefined: all changes. */
export type HistoryPage = Page & { since?: number | undefined };
/** `number` counts the changes of the key. */
export type ListedChange = HistoryEntry & { number: number };
export interface HistoryReads {
  /** Latest first. */
  list(licenseKey: string, page: HistoryPage): ListedChange[];
  count(licenseKey: string, since?: number): number;
}
export interface HistoryTable extends HistoryReads {
  /** Adds a change, and removes the oldest changes of the key above `history.keep`. */
  add(change: HistoryEntry): void;
  /** Moves the changes from one spelling of a license key to another. */
  changeKey(from: string, to: string): void;
  /** Removes up to `limit` from before an instant; returns how many. */
  prune(before: number, limit: number): number;
}
