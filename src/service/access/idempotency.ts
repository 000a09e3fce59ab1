import { done, refuse, type Result } from '../../domain/problem/problem.ts';
import type { Context, Idempotency } from '../ports.ts';
import type { AuthorityTransaction, Reader } from '../tables.ts';

/** How long an answer is stored, in ms: 8 days, so that 7 are certain. */
const idempotencyKeptMs = 8 * 24 * 3_600_000;

/**
 * How many answers to changes that changed nothing are stored for each credential. No queue bounds such changes, so that
 * a caller could fill the disk; and each of them counts those before it.
 */
export const unchangedLimit = 10_000;

/**
 * The first successful result under an idempotency key, for the same request; a refusal for another request
 * (draft-ietf-httpapi-idempotency-key-header); null when none is stored.
 */
export async function storedResult(
  transaction: AuthorityTransaction,
  { credential, key, fingerprint }: Idempotency,
): Promise<unknown> {
  const stored = await transaction.idempotency.get(credential, key);
  if (stored === null) return null;
  if (stored.fingerprint === fingerprint) return stored.value;
  return refuse('idempotency_key_reused', 'This idempotency key was used for another request.');
}

/** Whether a request was answered before under its idempotency key, so that it is answered from the store. */
export function wasAnswered({ idempotency }: Reader, asked: Idempotency | null): boolean {
  return asked !== null && idempotency.get(asked.credential, asked.key) !== null;
}

/** Stores a successful result under its idempotency key; returns a refusal where it cannot be stored, else null. */
export async function storeResult(
  transaction: AuthorityTransaction,
  { credential, key, fingerprint }: Idempotency,
  result: Result<unknown>,
  { now }: Context,
): Promise<Result<never> | null> {
  const unchanged = result.ok && result.unchanged === true;
  if (unchanged && (await transaction.idempotency.unchangedCount(credential)) >= unchangedLimit) {
    const detail = 'This credential has sent too many changes under idempotency keys that change nothing.';
    return refuse('storage_full', detail);
  }
  await transaction.idempotency.put(credential, key, { fingerprint, value: result, at: now, unchanged });
  return null;
}

/** Replaces the answer stored at the commit by the one the caller got after waiting (`Prefer: wait`). */
export async function keepResponse(
  transaction: AuthorityTransaction,
  { idempotency, value }: { idempotency: Idempotency; value: unknown },
  { now }: Context,
): Promise<Result<null>> {
  const { credential, key, fingerprint } = idempotency;
  await transaction.idempotency.replace(credential, key, { fingerprint, value: done(value), at: now });
  return done(null);
}

/**
 * Removes at most so many stored answers after 8 days. Answers that a jump of the clock, which was taken back since, has
 * dated in the future are dated to now: otherwise they would stay for as long as the jump was. Returns how many answers
 * were removed or dated. `removalTime`: epoch ms (domain/clock.ts).
 */
export async function pruneIdempotency(
  transaction: AuthorityTransaction,
  { removalTime, limit }: { removalTime: number; limit: number },
  { now }: Pick<Context, 'now'>,
): Promise<Result<{ removed: number }>> {
  const { idempotency } = transaction;
  const dated = await idempotency.bringBack(now, limit);
  return done({ removed: dated + (await idempotency.prune(removalTime - idempotencyKeptMs, limit)) });
}

/** Whether a result is a refusal: nothing of its use case is committed. */
export function isRefusal(result: unknown): boolean {
  return typeof result === 'object' && result !== null && 'ok' in result && result.ok === false;
}
