import type { LicenseTrigger } from '../../domain/license.ts';
import { addLocalChange, type Observation } from '../../domain/observation.ts';
import { laneOf, type Operation } from '../../domain/operation.ts';
import { done, refuse, type Result } from '../../domain/problem.ts';
import type { FreshnessPolicy } from '../../domain/freshness.ts';
import { verdict } from '../../domain/verdict.ts';
import { move, putObservation, unfinishedCount } from './lane.ts';
import type { Context } from '../ports.ts';
import { licenseNotFound } from '../access/reach.ts';
import type { Transaction } from '../tables.ts';

export type QueueChange = {
  /** Null: a credential that reaches every product. */
  productKey: string | null;
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
  const { licenseKey, trigger } = command;
  const observation = transaction.observations.get(licenseKey);
  if (observation === null) return refuse('upstream_unreachable', 'Nothing is known of this key yet.');
  if (command.productKey !== null && observation.productKey !== command.productKey) return licenseNotFound();
  const known = verdict(observation, command.freshness, context.now);
  if (known.verdict === 'gone') return licenseNotFound();
  if (known.verdict === 'answer' && known.freshness === 'expired' && trigger !== 'disable') {
    return refuse('verdict_expired', 'The key was disabled when last seen, and that is too long ago.');
  }
  const underWay = transaction.operations.tail(licenseKey, laneOf[trigger]);
  if (underWay !== null && underWay.kind === trigger && setsState(trigger)) {
    return done({ observation, operationId: underWay.id });
  }
  if (trigger === 'enable' && observation.local.enabled) return done({ observation, operationId: null });
  if (unfinishedCount(transaction) >= command.maxPending) {
    return refuse(
      'storage_full',
      'The outbox is full (sync.max_pending): changes are taken again once the upstream has taken some.',
    );
  }
  const operation = queue(transaction, observation, trigger, context);
  if (trigger === 'enable' && undoDisable(transaction, observation, operation, context)) {
    return done({ observation: putObservation(transaction, observation), operationId: null });
  }
  const changed = { ...observation, local: addLocalChange(observation.local, operation) };
  transaction.observations.put(changed);
  return done({ observation: changed, operationId: operation.id });
}

/** Asking again for a state that is already on its way adds nothing; each use counts. */
function setsState(trigger: QueueChange['trigger']): boolean {
  return trigger === 'enable' || trigger === 'disable';
}

function queue(
  transaction: Transaction,
  observation: Observation,
  kind: QueueChange['trigger'],
  { now, steady, random }: Context,
): Operation {
  const subject = observation.license.licenseKey;
  const isHead = transaction.operations.head(subject, laneOf[kind]) === null;
  return transaction.operations.add({
    id: random.uuid(now),
    kind,
    subject,
    productKey: observation.productKey,
    createdAt: now,
    attempts: 0,
    failures: 0,
    nextAt: isHead ? steady : null,
    outage: false,
    lastError: null,
    revision: null,
    payload: null,
    progress: { state: 'pending', doubtful: false },
  });
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
  const [disable, ...behind] = transaction.operations.lane(enable.subject, 'state');
  const undone =
    observation.license.enabled &&
    disable?.kind === 'disable' &&
    disable.attempts === 0 &&
    disable.progress.state === 'pending' &&
    behind.length === 1;
  if (!undone) return false;
  move(transaction, disable, { type: 'cancel', at: now });
  move(transaction, enable, { type: 'cancel', at: now });
  return true;
}
