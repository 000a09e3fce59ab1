import { defaultAccountId } from '../../domain/access/principal.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import type { RoleName } from '../../domain/role.ts';
import { features } from '../../features.ts';
import { acceptAdminToken } from '../access/token.ts';
import { unfollowAll } from '../outbox/upstream/change.ts';
import type { Context, Random } from '../ports.ts';
import type { AuthorityReader, AuthorityTransaction, Transaction, Reader } from '../tables.ts';
import { beginEpoch } from './epoch.ts';
import { countStart, currentRun, noteLostConfirmations, noteLostHistory } from './run-count.ts';
import { newSecret } from '../access/credential.ts';
import {
  type Operation,
  type OperationEvent,
  isHeld,
  queueOf,
  type QueueName,
  advance,
} from '../../domain/outbox/operation.ts';
import { elapsedMark } from './time-mark.ts';
import { endWait, scheduleHead, putSnapshot } from '../outbox/queue.ts';
import { renewUnknownHistory, beginUnknownHistory, shiftStoredWaits } from '../outbox/upstream/waits.ts';
import { loseResponse } from '../outbox/after-response.ts';
import { boundUpstream, isLatchkey } from '../outbox/upstream/identity.ts';

type StartStore = {
  /** The digest of `admin.token`. */
  adminTokenDigest: string;
  /** Host and path of the state directory. If they change, the directory was copied. */
  place: string;
  /** The name of the node, if several nodes share the store. */
  node?: string;
};

export type StartAuthority = StartStore & {
  /** The digest of `api.key` at the first start; null later. */
  apiKeyDigest: string | null;
  /** Where `api.key` is, if several nodes share the store. */
  apiKeyKeptAt?: string;
};

const keptAtSetting = 'api_key_kept_at';

/** Where a node wrote the first API key; null if the store is not shared. */
export async function apiKeyKeptAt({ settings }: AuthorityReader): Promise<string | null> {
  return await settings.get(keptAtSetting);
}

export type StartAgent = StartStore & {
  /** `sync.reconcile_after`: requests in flight when the process ended may still arrive. */
  reconcileAfterMs: number;
};

type StartedStore = { instance: string };

/** The first start adds the default account. */
export async function startAuthority(
  transaction: AuthorityTransaction,
  command: StartAuthority,
  context: Context,
): Promise<Result<StartedStore>> {
  const { instance, isCopy } = await startStore(transaction, 'authority', command, context);
  await beginEpoch(transaction, context.random, { isNew: isCopy });
  if (isCopy) {
    await transaction.licenses.clearDisabledRevisions();
    await noteLostHistory(transaction, { run: 0, at: context.now });
  }
  const { accounts } = transaction;
  if (command.apiKeyDigest !== null && (await accounts.get(defaultAccountId)) === null) {
    const account = { accountId: defaultAccountId, name: defaultAccountId, createdAt: context.now };
    await accounts.add(account, command.apiKeyDigest);
    if (command.apiKeyKeptAt !== undefined) {
      await transaction.settings.set(keptAtSetting, command.apiKeyKeptAt);
    }
  }
  return done({ instance });
}

/** The original of a copied or restored store may have sent the unfinished operations, and follows the license keys. */
function beginCopy(transaction: Transaction, context: Context): void {
  unfollowAll(transaction);
  transaction.snapshots.clearDisabledRevisions();
  doubtUnfinished(transaction, context);
}

export async function startAgent(
  transaction: Transaction,
  command: StartAgent,
  context: Context,
): Promise<Result<StartedStore>> {
  const { instance, isCopy } = await startStore(transaction, 'agent', command, context);
  countStart(transaction);
  await beginEpoch(transaction, context.random, { isNew: isCopy });
  if (isCopy) {
    beginCopy(transaction, context);
    for (const { onCopy } of features) onCopy?.(transaction);
    await noteLostConfirmations(transaction, { run: currentRun(transaction), at: context.now });
  }
  const reached = resumeWaits(transaction, context.monotonic);
  makeInFlightUncertain(transaction, command, context);
  renewReconcileDelays(transaction, { reached, reconcileAfterMs: command.reconcileAfterMs }, context);
  return done({ instance });
}

/** A copy or a restored store keeps its leases and its requests: the key of the device, not the store, is its identity. */
export async function startHolder(
  transaction: Transaction,
  command: StartStore,
  context: Context,
): Promise<Result<StartedStore>> {
  const { instance } = await startStore(transaction, 'holder', command, context);
  return done({ instance });
}

async function startStore(
  transaction: AuthorityTransaction,
  role: RoleName,
  start: StartStore,
  context: Context,
): Promise<StartedStore & { isCopy: boolean }> {
  await storeRole(transaction, role);
  await acceptAdminToken(transaction, start, context);
  await createLogKey(transaction, context.random);
  return await recognizePlace(transaction, start.place, context);
}

/**
 * Waits are stored as `Clock.monotonic`, which starts again with each process. If the wall clock was set back, the new
 * `monotonic` may be less than the last stored one: then all waits are moved. Returns how far the last process
 * certainly got, on the clock of this process.
 */
function resumeWaits(transaction: Transaction, monotonic: number): number {
  const before = Number(transaction.settings.get(elapsedMark) ?? 0);
  transaction.settings.set(elapsedMark, String(monotonic));
  if (before <= monotonic) return before;
  transaction.operations.shiftWaits(monotonic - before);
  transaction.snapshots.shiftWaits(monotonic - before);
  shiftStoredWaits(transaction, monotonic - before);
  return monotonic;
}

/**
 * While the process was stopped, the wall clock may have been changed, so the monotonic time is unknown. At a start, each
 * reconcile delay that had not certainly passed at `reached` (monotonic ms) starts again, as does the delay of each
 * uncertain operation.
 */
function renewReconcileDelays(
  transaction: Transaction,
  { reached, reconcileAfterMs }: { reached: number; reconcileAfterMs: number },
  { monotonic }: Context,
): void {
  const { operations } = transaction;
  const reconcileAt = monotonic + reconcileAfterMs;
  operations.extendReconcileDelays(reached, reconcileAt);
  renewUnknownHistory(transaction, { reached, until: reconcileAt });
  const queues = new Map<string, { subject: string; queue: QueueName }>();
  for (const operation of operations.withState('uncertain')) {
    if (!isHeld(operation)) {
      operations.put({ ...operation, reconcileAt });
      const { subject, kind } = operation;
      const queue = queueOf[kind];
      queues.set(`${subject}\n${queue}`, { subject, queue });
    }
  }
  for (const { subject, queue } of queues.values()) {
    const head = operations.head(subject, queue);
    scheduleHead(transaction, subject, queue, {
      at: Math.max(monotonic, head?.nextAt ?? monotonic),
      failures: head?.failures ?? 0,
      outage: head?.outage ?? false,
    });
  }
}

/** Operations in flight when the process ended may have been applied. */
function makeInFlightUncertain(
  transaction: Transaction,
  policy: { reconcileAfterMs: number },
  context: Context,
): void {
  const lastError = 'the process ended while this was in flight';
  for (const operation of transaction.operations.withState('in_flight')) {
    const lost = loseResponse(transaction, { ...operation, lastError }, policy, context);
    scheduleHead(transaction, lost.subject, queueOf[lost.kind], { at: context.monotonic });
  }
}

/**
 * After a restore or a copy, the original may have delivered what this store still holds. A Latchkey knows each operation by
 * its id: all are sent again. At another upstream each unfinished operation is read back against the last snapshot, and ends
 * inferred at best; requests of the original are waited for. (src/sync/PLAIN-UPSTREAM.md, Start, restore and copy)
 */
function doubtUnfinished(transaction: Transaction, { monotonic }: Pick<Context, 'monotonic'>): void {
  const isResent = isLatchkey(transaction);
  if (!isResent) beginUnknownHistory(transaction);
  const { operations, snapshots } = transaction;
  const reopenedSubjects = new Set<string>();
  const unscheduled: Operation[] = [];
  const lastError = 'this store was restored or copied: it may have been delivered before';
  // The uncertain operations come first: the others become uncertain in this loop.
  for (const state of ['uncertain', 'in_flight', 'pending', 'dead'] as const) {
    for (const operation of operations.withState(state)) {
      const doubted = advance(operation, eventOfDoubt(transaction, operation, isResent));
      if (doubted.progress.state === 'dead') continue;
      if (state === 'dead') reopenedSubjects.add(operation.subject);
      const nextAt = doubted.progress.state === 'pending' ? operation.nextAt : null;
      if (isResent && nextAt === null && state !== 'pending') unscheduled.push(doubted);
      // Another store that takes the place of the upstream gets nothing that the original may have sent to this one.
      const upstream = operation.upstream ?? (isResent ? boundUpstream(transaction) : null);
      const doubt = { outage: false, lastError: operation.lastError ?? lastError };
      operations.put({ ...doubted, nextAt, upstream, ...doubt });
    }
  }
  for (const subject of reopenedSubjects) {
    const snapshot = snapshots.get(subject);
    if (snapshot !== null) putSnapshot(transaction, snapshot);
  }
  for (const { subject, kind } of unscheduled) {
    endWait(transaction, subject, queueOf[kind]);
    scheduleHead(transaction, subject, queueOf[kind], { at: monotonic });
  }
}

function eventOfDoubt(
  { snapshots }: Transaction,
  { subject, progress }: Operation,
  isResent: boolean,
): OperationEvent {
  if (isResent && progress.state !== 'uncertain') return { type: 'lose' };
  return { type: 'doubt', baseUses: snapshots.get(subject)?.license.uses ?? null, lasting: true };
}

/** If the place has changed, the store is a copy and gets a new instance id. */
async function recognizePlace(
  { settings }: AuthorityTransaction,
  place: string,
  { now, random }: Context,
): Promise<StartedStore & { isCopy: boolean }> {
  const known = await settings.get('instance');
  const before = await settings.get('place');
  await settings.set('place', place);
  if (known !== null && (before === null || before === place)) return { instance: known, isCopy: false };
  const instance = random.uuid(now);
  await settings.set('instance', instance);
  return { instance, isCopy: known !== null };
}

const logKeySetting = 'log_key';

/** The secret for hashes of license keys in the log. */
export async function logKey({ settings }: Pick<AuthorityReader, 'settings'>): Promise<string> {
  const secret = await settings.get(logKeySetting);
  if (secret === null) throw new Error('the store was never started');
  return secret;
}

async function createLogKey({ settings }: AuthorityTransaction, random: Random): Promise<void> {
  if ((await settings.get(logKeySetting)) === null)
    await settings.set(logKeySetting, newSecret('lk_log', random));
}

/** `unfinished`: how many operations must be read back. */
export type RestoredStore = { instance: string; unfinished: number };

/** Gives a restored store a new instance id. The history of an agent and its upstream is then unknown. */
export async function restore(
  transaction: Transaction,
  _: Record<string, never>,
  context: Context,
): Promise<Result<RestoredStore>> {
  const { now, random } = context;
  const instance = random.uuid(now);
  transaction.settings.set('instance', instance);
  await beginEpoch(transaction, random, { isNew: true });
  transaction.licenses.clearDisabledRevisions();
  beginCopy(transaction, context);
  if (roleOf(transaction) === 'agent') for (const { onCopy } of features) onCopy?.(transaction);
  await noteLostConfirmations(transaction, { run: currentRun(transaction) + 1, at: now });
  return done({ instance, unfinished: transaction.operations.unfinished() });
}

const roleSetting = 'role';

/** The role of the store's first start; null for a new store. */
export function roleOf({ settings }: Pick<Reader, 'settings'>): RoleName | null {
  const role = settings.get(roleSetting);
  return role === 'authority' || role === 'agent' || role === 'holder' ? role : null;
}

/**
 * Whether an authority's store contains only what its first start created. Then an agent may use the store, and nothing
 * is lost. An authority never takes an agent's store: an agent without its upstream must not answer as the authority.
 */
export async function isUnusedAuthority({
  accounts,
  products,
  collections,
  coupons,
}: AuthorityReader): Promise<boolean> {
  const counts = await Promise.all([
    products.count({}),
    collections.count({}),
    coupons.count(defaultAccountId),
  ]);
  return counts.every((count) => count === 0) && (await accounts.count({})) <= 1;
}

async function storeRole({ settings }: AuthorityTransaction, role: RoleName): Promise<void> {
  await settings.set(roleSetting, role);
}

/** Does nothing but add its audit entry: a person ended or reloaded the process. */
export function recordProcessAct(
  _transaction: AuthorityTransaction,
  _command: { act: 'stop' | 'reload'; detail: string },
): Result<null> {
  return done(null);
}
