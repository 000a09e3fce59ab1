import { done, refuse, type Result } from '../../domain/problem.ts';
import type { Context, Idempotency } from '../ports.ts';
import type { Transaction } from '../tables.ts';

/** How long a stored answer is given again, in ms: 8 days, so that 7 hold at least. */
export const idempotencyKeptMs: number = 8 * 24 * 3_600_000;

/**
 * Runs a write under its idempotency key: the first successful result is kept and given again to the
 * same request; another request under the key is refused (draft-ietf-httpapi-idempotency-key-header).
 */
export function runOnce<Outcome extends Result<unknown>>(
  transaction: Transaction,
  idempotency: Idempotency,
  context: Context,
  run: () => Outcome,
): Outcome | Result<never> {
  const { credential, key, fingerprint } = idempotency;
  const record = transaction.idempotency.get(credential, key);
  if (record !== null && record.fingerprint !== fingerprint) {
    return refuse('idempotency_key_reused', 'This idempotency key was used for another request.');
  }
  // The fingerprint covers what was asked, so the stored value is of the kind that was asked for.
  if (record !== null) return record.value as Outcome;
  const result = run();
  if (!isRefusal(result))
    transaction.idempotency.put(credential, key, { fingerprint, value: result, at: context.now });
  return result;
}

/** Puts what the caller is told after waiting in place of what was known at the commit. */
export function keepAnswer(
  transaction: Transaction,
  { idempotency, value }: { idempotency: Idempotency; value: unknown },
  { now }: Context,
): Result<null> {
  const { credential, key, fingerprint } = idempotency;
  transaction.idempotency.put(credential, key, { fingerprint, value: done(value), at: now });
  return done(null);
}

/** Whether a use case refused, and so must not have written. */
export function isRefusal(result: unknown): boolean {
  return typeof result === 'object' && result !== null && 'ok' in result && result.ok === false;
}
