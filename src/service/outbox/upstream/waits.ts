import type { Context } from '../../ports.ts';
import type { Reader, Transaction } from '../../tables.ts';
import { done, type Result } from '../../../domain/problem/problem.ts';

/* What is stored about the upstream besides operations: its last success, and why nothing is sent to it now. */

const lastSuccess = 'upstream_last_success_at';

/** The last success of the upstream, in epoch ms, also before a restart; null if there was none. */
export function lastSuccessAt({ settings }: Reader): number | null {
  const at = Number(settings.get(lastSuccess) ?? 0);
  return at > 0 ? at : null;
}

/** Stores the last success of the upstream. */
export function storeLastSuccess({ settings }: Transaction, { at }: { at: number }): Result<null> {
  settings.set(lastSuccess, String(at));
  return done(null);
}

const retryAfter = 'retry_after_until';

/** Until when the upstream asked for no requests (`Retry-After`; monotonic ms); 0 if it never did. */
export function retryAfterUntil(reader: Reader): number {
  return Number(reader.settings.get(retryAfter) ?? 0);
}

/** Stores a `Retry-After`; the longest wait holds. */
export function storeRetryAfter(transaction: Transaction, { until }: { until: number }): Result<null> {
  if (until > retryAfterUntil(transaction)) transaction.settings.set(retryAfter, String(until));
  return done(null);
}

const paused = 'sync_paused';

/** Whether a person has paused sync; a pause survives restarts. */
export function isPaused(reader: Reader): boolean {
  return reader.settings.get(paused) === '1';
}

/** Pauses or resumes sync. Resuming ends every wait except reconcile delays. */
export function pauseSync(
  transaction: Transaction,
  { isPaused: value }: { isPaused: boolean },
  { monotonic }: Context,
): Result<null> {
  transaction.settings.set(paused, value ? '1' : '0');
  if (!value) transaction.operations.endBackoff(monotonic);
  return done(null);
}

/** Ends every wait in the outbox except reconcile delays: `sync now`. */
export function retryNow(
  transaction: Transaction,
  _: Record<string, never>,
  { monotonic }: Context,
): Result<null> {
  transaction.operations.endBackoff(monotonic);
  return done(null);
}

/** Ends the wait of every queue that waits because of an outage. */
export function endOutage(
  transaction: Transaction,
  _: Record<string, never>,
  { monotonic }: Context,
): Result<null> {
  transaction.operations.endOutage(monotonic);
  return done(null);
}

/*
 * After a restore or a copy, requests of a history that this store does not know may be on their way, about any
 * subject. Until they must have arrived, nothing is sent as a change, and no read is a base or decides.
 * (src/sync/PLAIN-UPSTREAM.md, Start, restore and copy)
 */

const unknownHistory = 'unknown_history_until';

/** Until when requests of an unknown history may still arrive (monotonic ms); 0 if there are none. */
export function unknownHistoryUntil({ settings }: Reader): number {
  return Number(settings.get(unknownHistory) ?? 0);
}

/** This store has an unknown history from now on; its reconcile delay starts with the next start. */
export function beginUnknownHistory({ settings }: Transaction): void {
  settings.set(unknownHistory, String(Number.MAX_SAFE_INTEGER));
}

/** At a start: a reconcile delay that had not certainly passed at `reached` starts again, and ends at `until`. */
export function renewUnknownHistory(
  transaction: Transaction,
  { reached, until }: { reached: number; until: number },
): void {
  if (unknownHistoryUntil(transaction) > reached) transaction.settings.set(unknownHistory, String(until));
}

/** Adds `byMs` to the stored times after a restart by which `Clock.monotonic` went back. */
export function shiftStoredWaits({ settings }: Transaction, byMs: number): void {
  for (const name of [retryAfter, unknownHistory]) {
    const until = Number(settings.get(name) ?? 0);
    if (until > 0) settings.set(name, String(until + byMs));
  }
}

/** Removes what only holds for one upstream, because another one is configured. */
export function forgetUpstream({ settings }: Transaction): void {
  settings.set(lastSuccess, '0');
  settings.set(retryAfter, '0');
}
