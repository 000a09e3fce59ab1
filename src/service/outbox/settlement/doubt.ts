import { countApplied, type CounterKind } from '../../../domain/outbox/count.ts';
import type { Observation } from '../../../domain/agent/observation.ts';
import { laneOf, type Operation } from '../../../domain/outbox/operation.ts';
import { advance } from '../../../domain/outbox/operation-transitions.ts';
import type { Context } from '../../ports.ts';
import type { Transaction } from '../../tables.ts';
import { loseAnswer } from './fence.ts';
import { beginLostPast } from './lost-past.ts';
import { move, putObservation, scheduleHead } from '../lane.ts';

/** What was in flight when the process ended may or may not have been applied. */
export function doubtInFlight(transaction: Transaction, policy: { fenceMs: number }, context: Context): void {
  const lastError = 'the process ended while this was in flight';
  for (const operation of transaction.operations.withState('in_flight')) {
    const lost = loseAnswer(transaction, { ...operation, lastError }, policy, context);
    scheduleHead(transaction, lost.subject, laneOf[lost.kind], { at: context.steady });
  }
}

/**
 * After a restore or a copy, the original may have delivered what this store still holds: every unfinished
 * operation is read back against the last observation, and ends inferred at best; what the original had under
 * way is waited for.
 * (src/sync/README.md, Start, restore and copy)
 */
export function doubtAll(transaction: Transaction): void {
  beginLostPast(transaction);
  const { operations, observations } = transaction;
  const shownAnew = new Set<string>();
  const lastError = 'this store was restored or copied: it may have been delivered before';
  // Those in doubt come first, or the others would be met again as such.
  for (const state of ['uncertain', 'in_flight', 'pending', 'dead'] as const) {
    for (const operation of operations.withState(state)) {
      const baseUses = observations.get(operation.subject)?.license.uses ?? null;
      const doubted = advance(operation, { type: 'doubt', baseUses, lasting: true });
      if (doubted.progress.state === 'dead') continue;
      if (state === 'dead') shownAnew.add(operation.subject);
      operations.put({
        ...doubted,
        nextAt: null,
        outage: false,
        lastError: operation.lastError ?? lastError,
      });
    }
  }
  for (const subject of shownAnew) {
    const observation = observations.get(subject);
    if (observation !== null) putObservation(transaction, observation);
  }
}

/**
 * The first read after a start shows a count that the doubtful operations do not explain. If this agent is
 * the only writer, and all operations from before the start together explain it, they may have been delivered
 * in a past that this store does not remember (a snapshot): they are read back at `settleAt`. Otherwise
 * another writer changed the count: the operations are sent, and end inferred. Returns whether they are to be
 * read back.
 */
export function doubtEarlier(
  transaction: Transaction,
  observation: Observation,
  seen: { readUses: number; isOnlyWriter: boolean; lastSeq: number },
  settleAt: number,
): boolean {
  const { licenseKey, uses } = observation.license;
  const earlier = transaction.operations.lane(licenseKey, 'counter').filter(({ seq }) => seq <= seen.lastSeq);
  const pending = earlier.filter(({ progress }) => progress.state === 'pending');
  const base = baseOf(earlier) ?? uses;
  const explains = countApplied(base, earlier.map(counterKind), seen.readUses) !== null;
  const isOurs = seen.isOnlyWriter && explains && pending.length > 0;
  for (const operation of pending) {
    if (isOurs) {
      const fenced = { ...operation, fencedUntil: settleAt };
      move(transaction, fenced, { type: 'doubt', baseUses: uses, lasting: true });
    } else {
      move(transaction, operation, { type: 'suspect' });
    }
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
