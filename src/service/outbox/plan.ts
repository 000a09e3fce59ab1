import { nextStep, type Step } from '../../domain/lane.ts';
import { advance, laneOf, type LaneName, type Operation } from '../../domain/operation.ts';
import { done, type Result } from '../../domain/problem.ts';
import { currentBoot } from '../lifecycle/boot.ts';
import { scheduleHead } from './lane.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';

export type PlanStep = {
  subject: string;
  lane: LaneName;
  /** The lane has been read for this very attempt. */
  justRead: boolean;
};

/**
 * Decides what the head of a lane needs next. An operation to send is committed as `in_flight` here, so
 * that the mark is in the store before the first byte leaves.
 */
export function planStep(
  transaction: Transaction,
  { subject, lane, justRead }: PlanStep,
  { steady }: Context,
): Result<Step> {
  const head = transaction.operations.head(subject, lane);
  if (head === null || head.nextAt === null || head.nextAt > steady) return done({ step: 'none' });
  const observation = transaction.observations.get(subject);
  const lingersUntil = observation?.lingersUntil ?? 0;
  if (head.kind === 'enable' && lingersUntil > steady) {
    scheduleHead(transaction, subject, lane, { at: lingersUntil });
    return done({ step: 'none' });
  }
  if (hidesDoubt(transaction, head)) return done({ step: 'read' });
  const step = nextStep({ head, observation, boot: currentBoot(transaction), justRead });
  if (step.step !== 'send') return done(step);
  const { baseUses } = step;
  const operation = advance(head, { type: 'send', baseUses, at: steady });
  transaction.operations.put({ ...operation, nextAt: null });
  return done({ step: 'send', operation, baseUses });
}

/** Whether an older counter operation, sent again by a person, stands in front of one that is to be read back. */
function hidesDoubt({ operations }: Transaction, { kind, subject, progress }: Operation): boolean {
  if (laneOf[kind] !== 'counter' || progress.state !== 'pending' || operations.depth().uncertain === 0) {
    return false;
  }
  return operations.lane(subject, 'counter').some((other) => other.progress.state === 'uncertain');
}
