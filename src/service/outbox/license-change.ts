import type { LicenseTrigger } from '../../domain/license.ts';
import { addLocalChange, localLicense, type Observation } from '../../domain/agent/observation.ts';
import { isHeld, queueOf, type Operation } from '../../domain/outbox/operation.ts';
import { done, refuse, type Result } from '../../domain/problem/problem.ts';
import type { FreshnessPolicy } from '../../domain/agent/freshness.ts';
import { verdict } from '../../domain/agent/verdict.ts';
import { isOfFormerAddress, upstreamAddressSince } from './upstream-state.ts';
import { recordChange } from '../access/history.ts';
import { licenseNotFound } from '../access/license-access.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import { enqueue, refuseWhenFull, move, putObservation } from './queue.ts';

type QueueChange = {
  /** The configured products that the credential reaches. */
  productKeys: readonly string[];
  licenseKey: string;
  trigger: Exclude<LicenseTrigger, 'refund'>;
  freshness: FreshnessPolicy;
  /** `sync.max_pending`. */
  maxPending: number;
};

/** What a change left behind: the key as callers see it now, and the operation to wait for, if any. */
export type QueuedChange = { observation: Observation; operationId: string | null };

/**
 * Records a change of a license on an agent, with the operation that will carry it upward, in one
 * transaction. A key that was never observed here is refused as `upstream_unreachable`: fetch it first.
 */
export function queueChange(
  transaction: Transaction,
  command: QueueChange,
  context: Context,
): Result<QueuedChange> {
  const { trigger } = command;
  const observation = transaction.observations.get(command.licenseKey);
  if (observation === null) return refuse('upstream_unreachable', 'Nothing is known of this key yet.');
  if (!command.productKeys.includes(observation.productKey)) return licenseNotFound();
  const judged = verdict(observation, command.freshness, context.now);
  if (judged.verdict === 'gone') return licenseNotFound();
  if (judged.verdict === 'answer' && judged.freshness === 'expired' && trigger !== 'disable') {
    return refuse('verdict_expired', 'The key was disabled when last seen, and that is too long ago.');
  }
  const isFresh =
    judged.verdict === 'answer' &&
    judged.freshness === 'fresh' &&
    !isOfFormerAddress(upstreamAddressSince(transaction), observation);
  const needless = findNeedless(transaction, observation, { trigger, isFresh });
  if (needless !== null) return { ...done(needless), unchanged: true };
  const room = refuseWhenFull(transaction, command.maxPending);
  if (!room.ok) return room;
  const before = localLicense(observation);
  const operation = enqueue(
    transaction,
    {
      kind: trigger,
      subject: before.licenseKey,
      productKey: observation.productKey,
      seenEnabled: trigger === 'enable' ? observation.local.enabled : null,
    },
    context,
  );
  if (trigger === 'enable' && undoDisable(transaction, observation, operation, context)) {
    const undone = putObservation(transaction, observation);
    recordChange(transaction.history, { change: trigger, before, after: undone.local }, context);
    return done({ observation: undone, operationId: null });
  }
  const changed = { ...observation, local: addLocalChange(observation.local, operation) };
  transaction.observations.setLocal(before.licenseKey, changed.local);
  recordChange(transaction.history, { change: trigger, before, after: changed.local }, context);
  return done({ observation: changed, operationId: operation.id });
}

/**
 * What makes the change unnecessary: the same change of state is the last in its queue and under way, or the key was seen
 * enabled and the observation is fresh. An older one does not count: the key may have been disabled since.
 */
function findNeedless(
  { operations }: Transaction,
  observation: Observation,
  { trigger, isFresh }: { trigger: QueueChange['trigger']; isFresh: boolean },
): QueuedChange | null {
  if (trigger !== 'enable' && trigger !== 'disable') return null;
  const last = operations.tail(observation.license.licenseKey, queueOf[trigger]);
  if (last?.kind === trigger && !isHeld(last)) return { observation, operationId: last.id };
  const isEnabled = trigger === 'enable' && isFresh && observation.local.enabled;
  return isEnabled ? { observation, operationId: null } : null;
}

/**
 * Enabling undoes this agent's own disable, the only thing that holds the key disabled, while no attempt
 * of it was ever made: neither is sent.
 */
function undoDisable(
  transaction: Transaction,
  observation: Observation,
  enable: Operation,
  { now }: Context,
): boolean {
  const [disable, ...behind] = transaction.operations.queue(enable.subject, 'state');
  const undone =
    observation.license.enabled &&
    disable?.kind === 'disable' &&
    disable.attempts === 0 &&
    disable.progress.state === 'pending' &&
    !disable.progress.doubtful &&
    behind.length === 1;
  if (!undone) return false;
  move(transaction, disable, { type: 'cancel', at: now });
  move(transaction, enable, { type: 'cancel', at: now });
  return true;
}
