import { done, refuse, type Result } from '../../domain/problem.ts';
import type { Context, Idempotency } from '../ports.ts';
import type { AuthorityTransaction } from '../tables.ts';

/** How long a stored answer is given again, in ms: 8 days, so that 7 hold at least. */
const idempotencyKeptMs = 8 * 24 * 3_600_000;

/** How many answers to changes that changed nothing are kept: no queue bounds them, so a caller could fill the disk. */
export const unchangedLimit = 100_000;

/**
 * Runs a write under its idempotency key: the first successful result is kept and given again to the
 * same request; another request under the key is refused (draft-ietf-httpapi-idempotency-key-header).
 */
export async function runOnce<Answer extends Result<unknown>>(
  transaction: AuthorityTransaction,
  idempotency: Idempotency,
  context: Context,
  run: () => Promise<Answer>,
): Promise<Answer | Result<never>> {
  const { credential, key, fingerprint } = idempotency;
  const record = await transaction.idempotency.get(credential, key);
  if (record !== null && record.fingerprint !== fingerprint) {
    return refuse('idempotency_key_reused', 'This idempotency key was used for another request.');
  }
  // The fingerprint covers what was asked, so the stored value is of the kind that was asked for.
  if (record !== null) return record.value as Answer;
  const result = await run();
  if (isRefusal(result)) return result;
  const unchanged = result.ok && result.unchanged === true;
  if (unchanged && (await transaction.idempotency.unchangedCount()) >= unchangedLimit) {
    return refuse('storage_full', 'Too many changes that change nothing are kept for repetition.');
  }
  await transaction.idempotency.put(credential, key, {
    fingerprint,
    value: result,
    at: context.now,
    unchanged,
  });
  return result;
}

/** Puts what the caller is told after waiting in place of what was known at the commit. */
export async function keepAnswer(
  transaction: AuthorityTransaction,
  { idempotency, value }: { idempotency: Idempotency; value: unknown },
  { now }: Context,
): Promise<Result<null>> {
  const { credential, key, fingerprint } = idempotency;
  await transaction.idempotency.put(credential, key, {
    fingerprint,
    value: done(value),
    at: now,
    unchanged: false,
  });
  return done(null);
}

/**
 * Removes stored answers once they are no longer promised. `believedNow`: epoch ms that have certainly been
 * reached (`Clock.mark`).
 */
export async function pruneIdempotency(
  transaction: AuthorityTransaction,
  { believedNow }: { believedNow: number },
): Promise<Result<null>> {
  await transaction.idempotency.prune(believedNow - idempotencyKeptMs);
  return done(null);
}

/** Whether a use case refused, and so must not have written. */
export function isRefusal(result: unknown): boolean {
  return typeof result === 'object' && result !== null && 'ok' in result && result.ok === false;
}
