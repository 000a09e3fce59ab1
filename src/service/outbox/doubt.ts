import { countApplied, type CounterKind } from '../../domain/count.ts';
import type { Observation } from '../../domain/observation.ts';
import { laneOf, type Operation } from '../../domain/operation.ts';
import { move, scheduleHead } from './lane.ts';
import type { Transaction } from '../tables.ts';

/** What was in flight when the process ended may or may not have been applied: it becomes uncertain. */
export function doubtInFlight(transaction: Transaction): void {
  const lastError = 'the process ended while this was in flight';
  for (const operation of transaction.operations.withState('in_flight')) {
    move(transaction, { ...operation, lastError }, { type: 'ambiguous' });
  }
}

/**
 * Another past may have delivered what this store still holds (a restored backup, a copied directory):
 * every unfinished operation is read back against what was last seen.
 */
export function doubtAll(transaction: Transaction): void {
  const { operations, observations } = transaction;
  const lastError = 'this store was restored or copied: it may have been delivered before';
  for (const state of ['in_flight', 'pending'] as const) {
    for (let batch = operations.list(state, firstPage); batch.length > 0;) {
      for (const operation of batch) {
        const baseUses = observations.get(operation.subject)?.license.uses ?? null;
        move(transaction, { ...operation, lastError }, { type: 'doubt', baseUses });
      }
      batch = operations.list(state, firstPage);
    }
  }
}

const firstPage = { limit: 1000, offset: 0 };

/**
 * Nothing in doubt is read back before `settleAt` (`Clock.steady`): after a start nobody knows how long
 * ago it was sent, since the clock may have been turned in between.
 */
export function fenceDoubt(transaction: Transaction, settleAt: number): void {
  transaction.observations.lingerUntil(settleAt);
  for (const { subject, kind, progress } of transaction.operations.withState('uncertain')) {
    if (progress.state === 'uncertain' && !progress.held) {
      const lane = laneOf[kind];
      const head = transaction.operations.head(subject, lane);
      const at = Math.max(settleAt, head?.nextAt ?? settleAt);
      scheduleHead(transaction, subject, lane, { at, failures: head?.failures ?? 0 });
    }
  }
}

/**
 * The count became `readUses` while this process was not there, in a way that its own doubtful operations
 * do not explain. Where nobody else writes, and those of before this start explain it together, a past that
 * this store does not remember (a snapshot) may have delivered them: they are read back at `settleAt`.
 * Otherwise somebody else has written, which is no reason to give up a queue that was never sent: it is
 * sent, and ends as inferred. Says whether they are to be read back.
 */
export function doubtEarlier(
  transaction: Transaction,
  observation: Observation,
  seen: { readUses: number; isAlone: boolean; lastSeq: number },
  settleAt: number,
): boolean {
  const { licenseKey, uses } = observation.license;
  const earlier = transaction.operations.lane(licenseKey, 'counter').filter(({ seq }) => seq <= seen.lastSeq);
  const pending = earlier.filter(({ progress }) => progress.state === 'pending');
  const base = baseOf(earlier) ?? uses;
  const explains = countApplied(base, earlier.map(counterKind), seen.readUses) !== null;
  const isOurs = seen.isAlone && explains && pending.length > 0;
  for (const operation of pending) {
    move(transaction, operation, isOurs ? { type: 'doubt', baseUses: uses } : { type: 'suspect' });
  }
  if (isOurs) {
    const lastError = 'the count upstream moved while this process was away';
    scheduleHead(transaction, licenseKey, 'counter', { at: settleAt, lastError });
  }
  return isOurs;
}

/** The count on which the first of doubtful operations was sent, as far as it is known. */
export function baseOf([first]: readonly Operation[]): number | null {
  return first?.progress.state === 'uncertain' ? first.progress.baseUses : null;
}

export function counterKind({ kind }: Operation): CounterKind {
  return kind === 'decrease' ? 'decrease' : 'usage';
}
