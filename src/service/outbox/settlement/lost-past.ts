import type { Reader, Transaction } from '../../tables.ts';

/*
 * After a restore or a copy, the past that this store does not remember may have requests on their way, about
 * any subject. Until they are dead, nothing is changed upstream, and no read is counted from or settles
 * anything. (src/sync/README.md, Start, restore and copy)
 */

const setting = 'lost_past_until';

/** Until when requests of a lost past may still arrive, by `Clock.steady`; 0 when there is none. */
export function lostPastUntil({ settings }: Reader): number {
  return Number(settings.get(setting) ?? 0);
}

/** From now on this store has a lost past; its fence begins with the next start. */
export function beginLostPast({ settings }: Transaction): void {
  settings.set(setting, String(Number.MAX_SAFE_INTEGER));
}

/** At a start: a fence that had not certainly passed at `reached` begins anew, and ends at `until`. */
export function renewLostPast(
  transaction: Transaction,
  { reached, until }: { reached: number; until: number },
): void {
  if (lostPastUntil(transaction) > reached) transaction.settings.set(setting, String(until));
}

/** Moves the fence when `Clock.steady` has begun anew. */
export function shiftLostPast(transaction: Transaction, byMs: number): void {
  const until = lostPastUntil(transaction);
  if (until > 0) transaction.settings.set(setting, String(until + byMs));
}
