import { countApplied } from '../../../domain/outbox/count.ts';
import type { License } from '../../../domain/license.ts';
import { isCountInQuestion, type Observation } from '../../../domain/agent/observation.ts';
import type { Operation } from '../../../domain/outbox/operation.ts';
import { isOfEarlierBoot, lastSeqBefore } from '../../lifecycle/boot.ts';
import type { Context } from '../../ports.ts';
import type { Transaction } from '../../tables.ts';
import { baseOf, counterKind, doubtEarlier } from './doubt.ts';
import { fencedUntil, move, scheduleHead } from '../lane.ts';
import type { SyncPolicy } from '../policy.ts';
import type { UnexpectedCount } from '../delivery/record-answer.ts';
import { boundUpstream, isOfOtherUpstream } from '../control/upstream-binding.ts';

/** A read of a key, beside what was last seen of it. */
export type Settling = { observation: Observation; read: License; sentAt: number; policy: SyncPolicy };

export type SettledCounter = {
  /** Whether the count read may be counted from: nothing is on its way, or in doubt, that it could contain. */
  settled: boolean;
  /** A count that neither the last answer nor this agent's doubtful operations explain. */
  unexpected: UnexpectedCount | null;
};

const unsettled: SettledCounter = { settled: false, unexpected: null };

/** Settles the counter operations in doubt by the count that was read. (src/sync/README.md, After a lost response) */
export function settleCounter(
  transaction: Transaction,
  settling: Settling,
  context: Context,
): SettledCounter {
  const { observation, read, sentAt, policy } = settling;
  const { operations } = transaction;
  const subject = observation.license.licenseKey;
  if (fencedUntil(transaction, { subject, lane: 'counter', asDisable: false }, sentAt) !== null)
    return unsettled;
  const head = operations.head(subject, 'counter');
  const doubtful = operations.uncertain(subject, 'counter');
  // What another upstream has counted explains nothing here; what was sent to this one was sent on a count of its own.
  const isSentHere = doubtful[0]?.upstream === boundUpstream(transaction);
  const isForeign = !isSentHere && isOfOtherUpstream(transaction, observation);
  const base = isForeign ? read.uses : (baseOf(doubtful) ?? observation.license.uses);
  const applied = countApplied(base, doubtful.map(counterKind), read.uses);
  const isOnlyWriter = policy.writers === 'single' && !observation.manyWriters;
  if (applied === null && isOfEarlierBoot(transaction, observation)) {
    const seen = { readUses: read.uses, isOnlyWriter, lastSeq: lastSeqBefore(transaction) };
    if (doubtEarlier(transaction, observation, seen, context.steady + policy.fenceMs)) return unsettled;
  }
  if (doubtful.length > 0)
    settleDoubtful(transaction, doubtful, { ...settling, applied, isOnlyWriter }, context);
  endNeedlessDecrease(transaction, settling, context);
  scheduleNext(transaction, subject, head, context);
  const isExplained = applied !== null || isCountInQuestion(observation);
  return { settled: true, unexpected: isExplained ? null : { expected: base, got: read.uses } };
}

/** Why one is held, whatever went wrong on the way there. */
const unproven =
  'it may have been applied: another writer, a lost past or an earlier attempt could explain the count as well';

/** As many as the count has moved, in order, were applied; the rest are sent. */
function settleDoubtful(
  transaction: Transaction,
  doubtful: readonly Operation[],
  { policy, applied, isOnlyWriter }: Settling & { applied: number | null; isOnlyWriter: boolean },
  { now }: Context,
): void {
  // Where one of them may have been delivered by a past that is not remembered, the count tells of none for sure.
  const certain = applied !== null && isOnlyWriter && !doubtful.some(hasLastingDoubt);
  for (const [index, operation] of doubtful.entries()) {
    if (index >= (applied ?? doubtful.length)) {
      move(transaction, operation, { type: 'read_absent', certain });
    } else if (!certain && policy.onDoubt === 'hold') {
      move(transaction, { ...operation, lastError: unproven }, { type: 'hold' });
    } else {
      move(transaction, operation, { type: 'read_applied', certain, at: now });
    }
  }
}

function hasLastingDoubt({ progress }: Operation): boolean {
  return progress.state === 'uncertain' && progress.doubtful;
}

/** A read made for this attempt shows 0: a decrease at the head has nothing to take back. */
function endNeedlessDecrease(
  transaction: Transaction,
  { observation, read, sentAt }: Settling,
  { now }: Context,
): void {
  const head = transaction.operations.head(observation.license.licenseKey, 'counter');
  if (head === null || head.nextAt === null || sentAt < head.nextAt || read.uses > 0) return;
  if (head.kind === 'decrease' && head.progress.state === 'pending') {
    move(transaction, head, { type: 'needless', at: now });
  }
}

/** Schedules the head for now, unless it is the same one as before and still waits. */
function scheduleNext(
  transaction: Transaction,
  subject: string,
  before: Operation | null,
  { steady }: Context,
): void {
  const head = transaction.operations.head(subject, 'counter');
  const isWaiting = head !== null && head.id === before?.id && head.nextAt !== null && head.nextAt > steady;
  if (!isWaiting) scheduleHead(transaction, subject, 'counter', { at: steady });
}
