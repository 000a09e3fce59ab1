import { done, failWith, type Result } from '../../domain/problem/problem.ts';
import type { Context, Idempotency } from '../ports.ts';
import type { AuthorityTransaction, Reader } from '../tables.ts';
import type { HistoryEntry, LicenseState, License } from '../../domain/license.ts';

/** 8 days, so that 7 days are certain. */
const idempotencyRetentionMs = 8 * 24 * 3_600_000;

/**
 * Limits the stored responses to requests that changed nothing, per credential. No queue limits such requests, so a
 * caller could fill the disk. Each such request counts the stored ones, so there must be few.
 */
export const maxUnchangedResponses = 10_000;

/**
 * The first successful result under an idempotency key. A different request under the same key is refused
 * (draft-ietf-httpapi-idempotency-key-header). Null if no result is stored.
 */
export async function storedResult(
  transaction: AuthorityTransaction,
  { credential, key, fingerprint }: Idempotency,
): Promise<unknown> {
  const stored = await transaction.idempotency.get(credential, key);
  if (stored === null) return null;
  if (stored.fingerprint === fingerprint) return stored.value;
  return failWith('idempotency_key_reused', 'This idempotency key was used for another request.');
}

/** Whether the store has a response under the idempotency key. */
export function hasStoredResponse({ idempotency }: Reader, asked: Idempotency | null): boolean {
  return asked !== null && idempotency.get(asked.credential, asked.key) !== null;
}

/** Stores a successful result under its idempotency key; returns a refusal if it cannot be stored, else null. */
export async function storeResult(
  transaction: AuthorityTransaction,
  { credential, key, fingerprint }: Idempotency,
  result: Result<unknown>,
  { now }: Context,
): Promise<Result<never> | null> {
  const unchanged = result.ok && result.unchanged === true;
  if (unchanged && (await transaction.idempotency.unchangedCount(credential)) >= maxUnchangedResponses) {
    const detail = 'This credential has sent too many changes under idempotency keys that change nothing.';
    return failWith('storage_full', detail);
  }
  await transaction.idempotency.put(credential, key, { fingerprint, value: result, at: now, unchanged });
  return null;
}

/** Does nothing but add its audit entry: a person ended or reloaded the process. */
export function recordProcessAct(
  _transaction: AuthorityTransaction,
  _command: { act: 'stop' | 'reload'; detail: string },
): Result<null> {
  return done(null);
}

/** Does nothing but add its audit entry: a person signed in to the console, or out of it. */
export function recordConsoleAct(
  _transaction: AuthorityTransaction,
  _command: { act: 'sign_in' | 'refuse' | 'sign_out'; code: string; detail: string },
): Result<null> {
  return done(null);
}

/** Replaces the response of the commit by the response that the caller got after waiting (`Prefer: wait`). */
export async function storeFinalResponse(
  transaction: AuthorityTransaction,
  { idempotency, value }: { idempotency: Idempotency; value: unknown },
  { now }: Context,
): Promise<Result<null>> {
  const { credential, key, fingerprint } = idempotency;
  await transaction.idempotency.replace(credential, key, { fingerprint, value: done(value), at: now });
  return done(null);
}

/**
 * Removes up to `limit` stored responses after 8 days. If the clock jumped ahead and was set back, responses may have
 * a date in the future. They get the current date, or they would stay for as long as the jump was. Returns how many
 * were removed or dated. `removalTime`: epoch ms (domain/time.ts).
 */
export async function pruneIdempotency(
  transaction: AuthorityTransaction,
  { removalTime, limit }: { removalTime: number; limit: number },
  { now }: Pick<Context, 'now'>,
): Promise<Result<{ removed: number }>> {
  const { idempotency } = transaction;
  const dated = await idempotency.clampToNow(now, limit);
  return done({ removed: dated + (await idempotency.prune(removalTime - idempotencyRetentionMs, limit)) });
}

/** Nothing is committed for a refusal. */
export function isFailure(result: unknown): boolean {
  return typeof result === 'object' && result !== null && 'ok' in result && result.ok === false;
}

/** Adds a change of a license to its history, unless `history.keep` is 0. */
export function recordChange<Added>(
  history: { add(change: HistoryEntry): Added },
  { change, before, after }: Pick<HistoryEntry, 'change'> & { before: License; after: LicenseState },
  { now, actor, recordsHistory }: Context,
): Added | undefined {
  if (!recordsHistory) return undefined;
  return history.add({
    licenseKey: before.licenseKey,
    at: now,
    change,
    credential: actor,
    before: { uses: before.uses, enabled: before.enabled },
    after: { uses: after.uses, enabled: after.enabled },
  });
}

/** Removes up to `limit` changes from before an instant; returns how many. */
export async function pruneHistory(
  { history }: AuthorityTransaction,
  { before, limit }: { before: number; limit: number },
): Promise<Result<{ removed: number }>> {
  return done({ removed: await history.prune(before, limit) });
}
