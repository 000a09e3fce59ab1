import { licenseAfter, type LicenseTrigger } from '../../domain/license.ts';
import {
  addLocalChange,
  localLicense,
  type LicenseSnapshot,
  type FreshnessPolicy,
  verdict,
} from '../../domain/agent/license-snapshot.ts';
import { hasTerms } from '../../domain/terms.ts';
import { isHeld, mayHaveBeenApplied, queueOf, type Operation } from '../../domain/outbox/operation.ts';
import { notFound, done, failWith, limitReached, type Result } from '../../domain/problem/problem.ts';
import { revisionSeen } from './upstream/identity.ts';
import { isOfFormerAddress, upstreamAddressSince } from './upstream/former.ts';
import { recordChange } from '../history.ts';
import { enabledEvent } from '../../domain/event.ts';
import { note } from '../events.ts';
import type { Context, Keyed } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import { enqueue, refuseWhenFull, move, putSnapshot } from './queue.ts';

type QueueChange = {
  /** The configured products that the credential can see. */
  productIds: readonly string[];
  licenseKey: string;
  trigger: Exclude<LicenseTrigger, 'refund'>;
  freshness: FreshnessPolicy;
  /** `sync.max_pending`. */
  maxPending: number;
  /** The change was made at an agent below, which has perhaps answered its caller. */
  below?: Keyed | null;
};

/** The key as callers see it now, and the operation to wait for, if any. */
export type QueuedChange = {
  snapshot: LicenseSnapshot;
  operationId: string | null;
  /** For an agent below: the revision that the change has made here; absent: none. */
  appliedRevision?: number;
  /** When it was answered first (epoch ms), of a license whose answer depends on the time. */
  at?: number;
};

export function queueChange(
  transaction: Transaction,
  command: QueueChange,
  context: Context,
): Result<QueuedChange> {
  const queued = queueNow(transaction, command, context);
  if (!queued.ok || !hasTerms(queued.value.snapshot.license)) return queued;
  return { ...queued, value: { ...queued.value, at: context.now } };
}

/**
 * Records a change of a license on an agent, and the operation that will deliver it, in one transaction. Refuses a key
 * that was never read here as `upstream_unreachable`: fetch the key first.
 */
function queueNow(transaction: Transaction, command: QueueChange, context: Context): Result<QueuedChange> {
  const { trigger, below = null } = command;
  const snapshot = transaction.snapshots.get(command.licenseKey);
  if (snapshot === null) return failWith('upstream_unreachable', 'Nothing is known of this key yet.');
  if (!command.productIds.includes(snapshot.productId)) return notFound('license');
  const judged = verdict(snapshot, command.freshness, context.now);
  if (judged.verdict === 'gone') return notFound('license');
  const isExpired = judged.verdict === 'answer' && judged.freshness === 'expired';
  // The caller of a change from below was perhaps answered: the upstream decides.
  if (isExpired && trigger !== 'disable' && below === null) {
    return failWith('verdict_expired', 'The key was not valid when last seen, and that is too long ago.');
  }
  const isFresh =
    judged.verdict === 'answer' &&
    judged.freshness === 'fresh' &&
    !isOfFormerAddress(upstreamAddressSince(transaction), snapshot);
  const known = below === null ? null : transaction.operations.get(below.id);
  // Its stored answer is gone, and the operation is not.
  if (known !== null) return { ...done({ snapshot, operationId: null }), unchanged: true };
  const seenBelow = below?.seenRevision ?? null;
  if (trigger === 'enable' && seenBelow !== null && isRevokedSince(snapshot, seenBelow)) {
    return failWith('license_revoked', 'The license was disabled after the caller of this enable saw it.');
  }
  // The change of an agent below is sent on under its id, so that the upstream recognizes a repetition.
  const needless = below === null ? findNeedless(transaction, snapshot, { trigger, isFresh }) : null;
  if (needless !== null) return { ...done(needless), unchanged: true };
  const room = refuseWhenFull(transaction, command.maxPending);
  if (!room.ok) return room;
  const before = localLicense(snapshot);
  // The upstream decides about the change of an agent below, as above.
  if (trigger === 'usage' && below === null && licenseAfter(before, trigger) === before)
    return limitReached();
  const operation = enqueue(
    transaction,
    {
      kind: trigger,
      subject: before.licenseKey,
      productId: snapshot.productId,
      seenEnabled: trigger === 'enable' ? snapshot.local.enabled : null,
      seenRevision: trigger === 'enable' ? seenByCaller(transaction, snapshot, seenBelow) : null,
      below,
    },
    context,
  );
  if (trigger === 'enable' && undoDisable(transaction, snapshot, operation, context)) {
    const undone = putSnapshot(transaction, snapshot);
    recordChange(transaction.history, { change: trigger, before, after: undone.local }, context);
    return done(shownChange(transaction, { snapshot: undone, operationId: null }, snapshot));
  }
  const changed = { ...snapshot, local: addLocalChange(snapshot.local, operation) };
  transaction.snapshots.setLocal(before.licenseKey, changed.local);
  recordChange(transaction.history, { change: trigger, before, after: changed.local }, context);
  note(transaction, enabledEvent(before.licenseKey, before.enabled, changed.local.enabled));
  return done(shownChange(transaction, { snapshot: changed, operationId: operation.id }, snapshot));
}

/**
 * The revision at which the caller of an enable saw the license, in the history of the upstream. `seenBelow`: in the history
 * of this agent, 0 if the caller has seen only a former history. Then this agent cannot tell which disables the caller knows.
 */
function seenByCaller(
  transaction: Transaction,
  snapshot: LicenseSnapshot,
  seenBelow: number | null,
): number | null {
  return seenBelow === 0 ? 0 : revisionSeen(transaction, snapshot);
}

/** The table counts what callers are shown. */
function shownChange(
  { snapshots }: Transaction,
  { snapshot, operationId }: QueuedChange,
  { localRevisions: before }: LicenseSnapshot,
): QueuedChange {
  const { localRevisions } = snapshots.get(snapshot.license.licenseKey) ?? {};
  if (localRevisions === undefined) return { snapshot, operationId };
  const isChanged = localRevisions.revision !== before?.revision;
  const applied = isChanged ? { appliedRevision: localRevisions.revision } : {};
  return { snapshot: { ...snapshot, localRevisions }, operationId, ...applied };
}

/** Whether callers of this agent were shown the license as disabled after a revision. */
function isRevokedSince({ local, localRevisions }: LicenseSnapshot, revision: number): boolean {
  return !local.enabled && localRevisions !== undefined && localRevisions.disabledRevision > revision;
}

/**
 * A change that is not needed: the same change of state is the last in its queue and unfinished, or the key is enabled
 * by a fresh snapshot. An older snapshot does not count: the key may have been disabled since.
 */
function findNeedless(
  { operations }: Transaction,
  snapshot: LicenseSnapshot,
  { trigger, isFresh }: { trigger: QueueChange['trigger']; isFresh: boolean },
): QueuedChange | null {
  if (trigger !== 'enable' && trigger !== 'disable') return null;
  const last = operations.tail(snapshot.license.licenseKey, queueOf[trigger]);
  if (last?.kind === trigger && !isHeld(last)) return { snapshot, operationId: last.id };
  const isEnabled = trigger === 'enable' && isFresh && snapshot.local.enabled;
  return isEnabled ? { snapshot, operationId: null } : null;
}

/**
 * Enabling undoes this agent's own disable if nothing else disables the key and the disable was never sent. Then
 * neither is sent.
 */
function undoDisable(
  transaction: Transaction,
  snapshot: LicenseSnapshot,
  enable: Operation,
  { now }: Context,
): boolean {
  const [disable, ...behind] = transaction.operations.queue(enable.subject, 'state');
  const undone =
    snapshot.license.enabled &&
    disable?.kind === 'disable' &&
    disable.attempts === 0 &&
    disable.progress.state === 'pending' &&
    !mayHaveBeenApplied(disable) &&
    behind.length === 1;
  if (!undone) return false;
  move(transaction, disable, { type: 'cancel', at: now });
  move(transaction, enable, { type: 'cancel', at: now });
  return true;
}
