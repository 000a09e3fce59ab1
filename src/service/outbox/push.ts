import { countAfter, type License } from '../../domain/license.ts';
import type { LicenseSnapshot } from '../../domain/agent/license-snapshot.ts';
import { isLicenseKind, type LicenseOperationKind, type Operation } from '../../domain/outbox/operation.ts';
import { done, failWith, type Result } from '../../domain/problem/problem.ts';
import { isUndecided, type PushedResult, type Reach } from '../../domain/sync/push.ts';
import { questionCoupons } from '../agent/mirror.ts';
import type { Context, PushAnswer, PushLimits } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import {
  endWait,
  licenseKeysOf,
  move,
  nextReconcileAt,
  putSnapshot,
  queueOfOperation,
  scheduleHead,
  send,
  type SyncPolicy,
  waitAfterFailure,
} from './queue.ts';
import { agentId, agentIdOf, noteRenumbering, wasRenumbered } from './agent-id.ts';
import { beginIdentity, isOtherStore, leaveStore, noteConflict } from './identity.ts';
import { endSuperseded, refuseOperation } from './record-response.ts';
import { isDelivered, mayHaveLost, noPush, splitByAge } from './journal.ts';
import { endAwait } from '../../domain/outbox/awaited.ts';
import { recordCouponRefused, recordPushedCoupon } from './pushed-coupon.ts';
import { prepareToSend } from '../../domain/outbox/coupon-payload.ts';
import { recordRedeemed, recordRedeemRefused, recordVoidRefused } from './redemption.ts';
import type { LostOperations, Push, QueueKey } from './tables.ts';

/*
 * Pushes: the changes of one product, or of coupons, numbered and sent together to an upstream that speaks `/sync/v1`. One
 * push of each is under way at a time. It is repeated byte for byte until it is answered, so nothing is ever uncertain.
 */

/** `body`: as it was sent before; null: it was never sent. */
export type PlannedPush = Pick<Push, 'seq' | 'body'> & { agent: string; operations: readonly Operation[] };

/**
 * The push of a reach that is not answered yet; otherwise a new one with the operations that are due, which are in
 * flight from then on. `push`: null if there is nothing to send. `keysToRead`: their changes wait for a read.
 */
export function planPush(
  transaction: Transaction,
  { productId, limits }: { productId: Reach; limits: PushLimits },
  context: Context,
): Result<{ push: PlannedPush | null; keysToRead: readonly string[] }> {
  const { pushes, operations } = transaction;
  const agent = agentId(transaction, context);
  const last = pushes.get(productId) ?? noPush;
  if (!last.isAnswered) {
    const { seq, body } = last;
    const inFlight = operations.ofPush(productId, seq);
    const pushed = productId === null ? inFlight : revocationsFirst(inFlight);
    return done({ push: { agent, seq, body, operations: pushed }, keysToRead: [] });
  }
  const { chosen, keysToRead } =
    productId === null
      ? { chosen: chooseCoupons(transaction, limits), keysToRead: [] }
      : chooseOperations(transaction, { productId, limits }, context);
  if (chosen.length === 0) return done({ push: null, keysToRead });
  const seq = last.seq + 1;
  const sent = chosen.map((operation) =>
    send(transaction, operation, { baseUses: null, at: context.monotonic }),
  );
  operations.addToPush(sent, seq);
  const { epoch } = last;
  pushes.put(productId, { seq, isAnswered: false, body: null, epoch });
  return done({ push: { agent, seq, body: null, operations: sent }, keysToRead });
}

function chooseCoupons({ operations }: Transaction, limits: PushLimits): Operation[] {
  return withinLimits(operations.pendingCoupons(limits.operations).map(prepareToSend), limits);
}

/** Revocations first; then the queues that have waited longest. */
function chooseOperations(
  transaction: Transaction,
  { productId, limits }: { productId: string; limits: PushLimits },
  context: Context,
): { chosen: Operation[]; keysToRead: string[] } {
  const { operations, snapshots } = transaction;
  const due = operations.due(context.monotonic, limits.operations, (owner) => owner === productId);
  const { known = [], missing = [] } = Object.groupBy(due, ({ subject }) => {
    const snapshot = snapshots.get(subject);
    return snapshot !== null && mayBeMissing(snapshot) ? 'missing' : 'known';
  });
  const isUnread = (subject: string): boolean => snapshots.get(subject)?.readFirst === true;
  // Nobody asks for the key any longer, so that only its changes cause reads.
  const isUnasked = (subject: string): boolean => snapshots.get(subject)?.refreshAt === null;
  // The read of a key ends the wait of its queues.
  for (const { subject, queue } of missing) {
    const waitMs = isUnread(subject) ? missingWaitMs : unaskedWaitMs;
    scheduleHead(transaction, subject, queue, { at: context.monotonic + waitMs });
  }
  const unread = missing.filter(({ subject }) => isUnread(subject) || isUnasked(subject));
  return {
    chosen: withinLimits(
      firstOf(transaction, known, { productId, limit: limits.operations, now: context.monotonic }),
      limits,
    ),
    keysToRead: [...new Set(unread.map(({ subject }) => subject))],
  };
}

/** The first pending operations of queues, revocations first. */
function firstOf(
  transaction: Transaction,
  queues: readonly QueueKey[],
  { productId, limit, now }: { productId: string; limit: number; now: number },
): Operation[] {
  const { operations } = transaction;
  const heads = queues.flatMap(({ subject, queue }) => operations.firstPending(subject, queue, 1));
  const chosen: Operation[] = [];
  for (const head of revocationsFirst(heads)) {
    if (chosen.length >= limit) break;
    const left = limit - chosen.length;
    const pending = operations.firstPending(head.subject, queueOfOperation(head), left);
    // The changes of a key that is known under another product now may be of both products. An enable waits while an
    // earlier disable, which left by the plain protocol, may still arrive.
    const end = pending.findIndex(
      (operation, index) =>
        operation.productId !== productId || (index > 0 && isDelayed(transaction, operation, now)),
    );
    chosen.push(...pending.slice(0, end === -1 ? undefined : end));
  }
  return chosen;
}

function isDelayed(transaction: Transaction, { kind, subject }: Operation, now: number): boolean {
  if (kind !== 'enable') return false;
  return nextReconcileAt(transaction, { subject, queue: 'state', asDisable: false }, now) !== null;
}

/** Each queue stays in order. A queue is a revocation if its first operation is a disable. */
function revocationsFirst(operations: readonly Operation[]): Operation[] {
  const queues = [...Map.groupBy(operations, queueNameOf).values()];
  const revocations = queues.filter(([head]) => head?.kind === 'disable');
  const others = queues.filter(([head]) => head?.kind !== 'disable');
  return [...revocations, ...others].flat();
}

function queueNameOf(operation: Operation): string {
  return `${queueOfOperation(operation)} ${operation.subject}`;
}

/** How long a queue waits whose key must be read first, in ms, before the key is looked at again. */
const missingWaitMs = 60_000;
/** The same, if a read has not found the key either: then reads need not be frequent. */
const unaskedWaitMs = 600_000;

/** The upstream answered 404 about the key: nothing is sent until a read shows the key. */
function mayBeMissing({ missingSince, readFirst }: LicenseSnapshot): boolean {
  return missingSince !== null || readFirst;
}

function withinLimits(waiting: readonly Operation[], limits: PushLimits): Operation[] {
  let bytes = 0;
  const end = waiting.findIndex((operation, index) => {
    bytes += maxBytesOf(operation);
    return index >= limits.operations || (index > 0 && bytes > limits.bytes);
  });
  return waiting.slice(0, end === -1 ? undefined : end);
}

/** No more than this is written for an operation: a character takes at most three bytes in UTF-8, and is escaped as six. */
function maxBytesOf({ subject, payload }: Operation): number {
  const payloadBytes = payload === null ? 0 : new TextEncoder().encode(payload).length;
  // Names of members are a little longer on the wire.
  return 300 + 6 * subject.length + 1.1 * payloadBytes;
}

/** Stores the body of a push before its first byte leaves. */
export function storePush(
  { pushes }: Transaction,
  { productId, seq, body }: { productId: Reach; seq: number; body: string },
): Result<null> {
  const push = pushes.get(productId);
  if (push === null || push.seq !== seq || push.isAnswered)
    return failWith('operation_not_open', 'The push is over.');
  pushes.put(productId, { ...push, body: push.body ?? body });
  return done(null);
}

type Results = Extract<PushAnswer, { kind: 'results' }>['results'];

type RecordPush = {
  productId: Reach;
  seq: number;
  epoch: string;
  /** An operation without a result was applied. */
  results: Results;
  policy: SyncPolicy;
};

/** Records the answer to a push. The answer to an older push changes nothing. */
export function recordPush(
  transaction: Transaction,
  { productId, seq, epoch, results, policy }: RecordPush,
  context: Context,
): Result<{ delivered: number; rejected: number }> {
  const { pushes, operations, snapshots } = transaction;
  const push = pushes.get(productId);
  if (push === null || push.seq !== seq || push.isAnswered) return done({ delivered: 0, rejected: 0 });
  const pushed = operations.ofPush(productId, seq);
  for (const operation of pushed) {
    const result = results[operation.id] ?? { outcome: 'applied' };
    if (result.outcome === 'applied') recordApplied(transaction, operation, result, context);
    else recordRejected(transaction, operation, { result, policy }, context);
  }
  pushes.put(productId, { seq, isAnswered: true, body: null, epoch });
  for (const subject of licenseKeysOf(pushed)) {
    const snapshot = snapshots.get(subject);
    if (snapshot !== null) putSnapshot(transaction, snapshot);
  }
  for (const operation of onePerQueue(pushed)) scheduleNext(transaction, operation, context);
  if (mayHaveLost(transaction, { before: push.epoch, epoch }))
    resumePushes(transaction, { productId, agent: agentId(transaction, context), last: seq, epoch }, context);
  const rejected = pushed.filter(({ id }) => (results[id]?.outcome ?? 'applied') !== 'applied').length;
  return done({ delivered: pushed.length - rejected, rejected });
}

function onePerQueue(operations: readonly Operation[]): Iterable<Operation> {
  return new Map(operations.map((each) => [queueNameOf(each), each])).values();
}

/** A head that waits because its key may be missing keeps its wait. */
function scheduleNext(transaction: Transaction, operation: Operation, { monotonic }: Context): void {
  const queue = queueOfOperation(operation);
  const head = transaction.operations.head(operation.subject, queue);
  if (head !== null && head.nextAt === null)
    scheduleHead(transaction, operation.subject, queue, { at: monotonic });
}

function recordApplied(
  transaction: Transaction,
  operation: Operation,
  result: Extract<PushedResult, { outcome: 'applied' }>,
  context: Context,
): void {
  switch (operation.kind) {
    case 'create_coupon':
      recordPushedCoupon(transaction, operation, result, context);
      break;
    case 'redeem':
      recordRedeemed(transaction, operation, result, context);
      break;
    case 'void':
      move(transaction, operation, { type: 'applied', certain: true, at: context.now });
      break;
    case 'usage':
    case 'decrease':
    case 'disable':
    case 'enable':
      recordDelivered(transaction, operation, context);
  }
}

/** The upstream has carried out the operation: what it last said about the key now contains the change. */
function recordDelivered(transaction: Transaction, operation: Operation, context: Context): void {
  // A disable sets a value: it does not matter how often it arrived.
  const certain = operation.kind === 'disable';
  const delivered = move(transaction, operation, { type: 'applied', certain, at: context.now });
  if (queueOfOperation(operation) === 'state') endSuperseded(transaction, delivered, context);
  const snapshot = transaction.snapshots.get(operation.subject);
  if (snapshot === null || !isLicenseKind(operation.kind)) return;
  transaction.snapshots.put({ ...snapshot, license: licenseAfterDelivery(snapshot.license, operation.kind) });
  // What the upstream last said may have contained an earlier attempt: the upstream is asked for the license.
  if (operation.attempts > 1) transaction.snapshots.setFollowed(operation.subject, false);
}

function licenseAfterDelivery(license: License, kind: LicenseOperationKind): License {
  if (kind === 'enable' || kind === 'disable') return { ...license, enabled: kind === 'enable' };
  return { ...license, uses: countAfter(license.uses, kind) };
}

function recordRejected(
  transaction: Transaction,
  operation: Operation,
  { result, policy }: { result: Exclude<PushedResult, { outcome: 'applied' }>; policy: SyncPolicy },
  context: Context,
): void {
  switch (operation.kind) {
    case 'create_coupon':
      recordCouponRefused(transaction, operation, result, context);
      break;
    case 'redeem':
      recordRedeemRefused(transaction, operation, result, context);
      break;
    case 'void':
      recordVoidRefused(transaction, operation, result, context);
      break;
    case 'usage':
    case 'decrease':
    case 'disable':
    case 'enable':
      recordChangeRejected(transaction, operation, { result, policy }, context);
  }
}

function recordChangeRejected(
  transaction: Transaction,
  operation: Operation,
  { result, policy }: { result: Exclude<PushedResult, { outcome: 'applied' }>; policy: SyncPolicy },
  context: Context,
): void {
  const { outcome, code } = result;
  const detail = `the upstream answered ${code}`;
  if (outcome === 'conflicted') {
    move(transaction, { ...operation, lastError: detail }, { type: 'conflict' });
    return;
  }
  if (!isUndecided(result)) {
    refuseOperation(transaction, operation, { cause: 'refused', detail });
    return;
  }
  // That the key is not found proves nothing: only reads do.
  const waiting = move(transaction, operation, { type: 'not_applied' });
  const wait = waitAfterFailure(waiting, { detail, retryAfterMs: null, outage: false }, policy, context);
  scheduleHead(transaction, operation.subject, queueOfOperation(operation), wait);
  const snapshot = transaction.snapshots.get(operation.subject);
  if (snapshot !== null)
    transaction.snapshots.put({ ...snapshot, readFirst: true, refreshAt: context.monotonic });
}

/** `repeated`: how many operations are sent again. `lost`: those that cannot be sent again; null: none. */
export type ResumedPushes = { last: number; repeated: number; lost: LostOperations | null };

/** `agent`: the id that the upstream has answered. */
type ResumePushes = { productId: Reach; agent: string; last: number; epoch: string };

/**
 * The upstream expects another number. If it has lost pushes, it was restored: the unfinished push and the pushes after `last`
 * are sent again under new numbers. The upstream knows operations by their ids, so none is carried out twice. `lost`: what
 * is too old for that. If the upstream has pushes that this store does not know, this store is older: it begins a new
 * identity. If it is another store, nothing is sent again: its licenses may contain every change (`leaveStore`).
 */
export function resumePushes(
  transaction: Transaction,
  { productId, agent, last, epoch }: ResumePushes,
  context: Context,
): Result<ResumedPushes> {
  const { pushes, operations } = transaction;
  const push = pushes.get(productId) ?? noPush;
  if (agentIdOf(transaction) !== agent) return done({ last: push.seq, repeated: 0, lost: null });
  if (isOtherStore(push.epoch, epoch)) {
    leaveStore(transaction, context);
    return done({ last, repeated: 0, lost: null });
  }
  if (last > push.seq) {
    beginIdentity(transaction);
    noteConflict(transaction, context);
    return done({ last, repeated: 0, lost: null });
  }
  const unanswered = push.isAnswered ? [] : operations.ofPush(productId, push.seq);
  const later = operations
    .pushedAfter(productId, wasRenumbered(transaction) ? 0 : last)
    .filter(({ id }) => !unanswered.some((each) => each.id === id));
  const delivered = later.filter(isDelivered);
  const isRestored = last > 0 || push.epoch !== epoch;
  const { sendable, lost } = splitByAge(transaction, { productId, last, delivered, isRestored }, context);
  const inFlight = [...unanswered, ...later].filter(({ progress: { state } }) => state === 'in_flight');
  const repeated = [...inFlight, ...sendable];
  for (const operation of onePerQueue(repeated))
    endWait(transaction, operation.subject, queueOfOperation(operation));
  for (const operation of repeated) {
    // The caller of a change that has ended has been answered.
    const isAnswered = operation.progress.state !== 'in_flight' && operation.payload !== null;
    move(transaction, isAnswered ? endAwait(operation) : operation, { type: 'resume' });
    if (operation.progress.state !== 'in_flight') undoDelivery(transaction, operation);
  }
  for (const subject of licenseKeysOf(repeated)) {
    const snapshot = transaction.snapshots.get(subject);
    if (snapshot !== null) putSnapshot(transaction, { ...snapshot, refreshAt: context.monotonic });
  }
  for (const operation of onePerQueue(repeated))
    scheduleHead(transaction, operation.subject, queueOfOperation(operation), { at: context.monotonic });
  if (productId === null && push.epoch !== epoch) questionCoupons(transaction);
  pushes.put(productId, { seq: last, isAnswered: true, body: null, epoch });
  noteRenumbering(transaction);
  // What the upstream has said about followed keys since is gone as well.
  transaction.follows.removeAll();
  transaction.snapshots.unfollowAll();
  return done({ last, repeated: repeated.length, lost });
}

/** What the upstream said about the key contains a change that it has lost. A read then shows what is really there. */
function undoDelivery({ snapshots }: Transaction, { kind, subject }: Operation): void {
  const snapshot = snapshots.get(subject);
  if (snapshot === null || (kind !== 'usage' && kind !== 'decrease')) return;
  const uses = countAfter(snapshot.license.uses, kind === 'usage' ? 'decrease' : 'usage');
  snapshots.put({ ...snapshot, license: { ...snapshot.license, uses } });
}
