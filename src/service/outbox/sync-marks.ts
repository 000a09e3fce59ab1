import { done, type Result } from '../../domain/problem/problem.ts';
import type { Context } from '../ports.ts';
import type { Reader, Transaction } from '../tables.ts';

const lastSuccess = 'upstream_last_success_at';

/** When the upstream last did what was asked, in epoch ms, also before a restart; null: never. */
export function lastSuccessAt({ settings }: Reader): number | null {
  const at = Number(settings.get(lastSuccess) ?? 0);
  return at > 0 ? at : null;
}

/** Remembers across restarts when the upstream last did what was asked. */
export function keepLastSuccess({ settings }: Transaction, { at }: { at: number }): Result<null> {
  settings.set(lastSuccess, String(at));
  return done(null);
}

/** Another upstream has done nothing yet. */
export function forgetLastSuccess({ settings }: Transaction): void {
  settings.set(lastSuccess, '0');
}

const retryAfter = 'retry_after_until';

/** Until when the upstream asked for quiet (`Retry-After`), by `Clock.elapsed`; 0 when it never did. */
export function retryAfterUntil(reader: Reader): number {
  return Number(reader.settings.get(retryAfter) ?? 0);
}

/** Remembers across restarts until when the upstream asked for quiet; the longest wait holds. */
export function keepRetryAfter(transaction: Transaction, { until }: { until: number }): Result<null> {
  if (until > retryAfterUntil(transaction)) transaction.settings.set(retryAfter, String(until));
  return done(null);
}

/** Moves the wait when `Clock.elapsed` has begun anew. */
export function shiftRetryAfter(transaction: Transaction, byMs: number): void {
  const until = retryAfterUntil(transaction);
  if (until > 0) transaction.settings.set(retryAfter, String(until + byMs));
}

/** Another upstream has asked for nothing yet. */
export function forgetRetryAfter({ settings }: Transaction): void {
  settings.set(retryAfter, '0');
}

const paused = 'sync_paused';

/** Whether a person has paused sync; it stays so across restarts. */
export function isPaused(reader: Reader): boolean {
  return reader.settings.get(paused) === '1';
}

/** Remembers that a person paused sync, or let it go on, which ends every wait but reconcile delays. */
export function pauseSync(
  transaction: Transaction,
  { isPaused: value }: { isPaused: boolean },
  { elapsed }: Context,
): Result<null> {
  transaction.settings.set(paused, value ? '1' : '0');
  if (!value) transaction.operations.endBackoff(elapsed);
  return done(null);
}

/** Ends every wait in the outbox except reconcile delays: `sync now`. */
export function retryNow(
  transaction: Transaction,
  _: Record<string, never>,
  { elapsed }: Context,
): Result<null> {
  transaction.operations.endBackoff(elapsed);
  return done(null);
}

/*
 * After a restore or a copy, the past that this store does not remember may have requests on their way, about
 * any subject. Until they are dead, nothing is changed upstream, and no read is counted from or reconciles
 * anything. (src/sync/README.md, Start, restore and copy)
 */

const unknownHistory = 'unknown_history_until';

/** Until when requests of an unknown history may still arrive, by `Clock.elapsed`; 0 when there is none. */
export function unknownHistoryUntil({ settings }: Reader): number {
  return Number(settings.get(unknownHistory) ?? 0);
}

/** From now on this store has an unknown history; its reconcile delay begins with the next start. */
export function beginUnknownHistory({ settings }: Transaction): void {
  settings.set(unknownHistory, String(Number.MAX_SAFE_INTEGER));
}

/** At a start: a reconcile delay that had not certainly passed at `reached` begins anew, and ends at `until`. */
export function renewUnknownHistory(
  transaction: Transaction,
  { reached, until }: { reached: number; until: number },
): void {
  if (unknownHistoryUntil(transaction) > reached) transaction.settings.set(unknownHistory, String(until));
}

/** Moves the reconcile delay when `Clock.elapsed` has begun anew. */
export function shiftUnknownHistory(transaction: Transaction, byMs: number): void {
  const until = unknownHistoryUntil(transaction);
  if (until > 0) transaction.settings.set(unknownHistory, String(until + byMs));
}
