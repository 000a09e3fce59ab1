import type { Page } from '../../domain/page.ts';
import type { ReachFilter } from '../../domain/principal.ts';
import type { Token } from '../../domain/token.ts';

export interface TokenReads {
  get(tokenId: string): Token | null;
  byDigest(digest: string): Token | null;
  list(filter: ReachFilter, page: Page): Token[];
  count(filter: ReachFilter): number;
}
export interface TokenTable extends TokenReads {
  add(token: Token, digest: string): void;
  remove(tokenId: string): void;
  renameProduct(from: string, to: string): void;
}

/** The stored answer of a write under an idempotency key. */
export type StoredAnswer = { fingerprint: string; value: unknown };
export interface IdempotencyReads {
  get(credential: string, key: string): StoredAnswer | null;
  /** How many of changes that changed nothing. */
  unchangedCount(): number;
}
export interface IdempotencyTable extends IdempotencyReads {
  put(credential: string, key: string, record: StoredAnswer & { at: number; unchanged: boolean }): void;
  remove(credential: string, key: string): void;
  /** What was kept for one credential is kept for another. */
  renameCredential(from: string, to: string): void;
  prune(before: number): void;
}

/** One act of a person, for ever. */
export type AuditEntry = { at: number; actor: string; act: string; subject: string; detail: string };
export interface AuditTable {
  add(entry: AuditEntry): void;
}
