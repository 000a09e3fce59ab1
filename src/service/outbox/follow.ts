import { nextRefreshAt, type LicenseSnapshot } from '../../domain/agent/license-snapshot.ts';
import type { License } from '../../domain/license.ts';
import { endAwait } from '../../domain/outbox/awaited.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import { questionCoupons } from '../agent/mirror.ts';
import { confirmTime, currentRun } from '../lifecycle/current-run.ts';
import type { ChangesAnswer, Context, FollowRequest } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import { agentIdOf } from './agent-id.ts';
import { isOtherStore, leaveStore } from './identity.ts';
import { answeredSeq, isResendable, mayHaveLost, noPush } from './journal.ts';
import { type ResumedPushes, resumePushes } from './push.ts';
import { move, putSnapshot, scheduleHead, type SyncPolicy } from './queue.ts';
import { reopenOperations } from './record-response.ts';
import { isOlderThanKnown } from './upstream-state.ts';

/*
 * Followed license keys: the upstream says what changes about them, and an answer without changes confirms all of them.
 * (src/sync/README.md, Between Latchkeys)
 */

type RecordChanges = {
  productId: string;
  sent: Pick<FollowRequest, 'follow' | 'unfollow'> & {
    agent: string;
    /** The last push that was answered before the request was sent. */
    answeredSeq: number;
  };
  answer: ChangesAnswer;
  policy: SyncPolicy;
};

/**
 * - `recorded`: the licenses are stored.
 * - `early`: they contain a push whose answer has not been recorded: record them after that answer.
 * - `resumed`: the same, and the upstream has lost pushes, which are sent again: it was restored.
 * - `late`: they do not contain a push whose answer has been recorded: ask again.
 * - `lost`: the upstream has lost pushes, and the push that is under way will show that.
 * - `replaced`: they come from another store at the address of the upstream.
 * - `ahead`: they contain pushes that this store does not know: it was restored without a new identity.
 */
type Order = 'recorded' | 'resumed' | 'early' | 'late' | 'lost' | 'replaced' | 'ahead';

/** `resumed`: what is sent again; null: nothing. */
export type RecordedChanges = { order: Order; resumed: ResumedPushes | null };

export function recordChanges(
  transaction: Transaction,
  command: RecordChanges,
  context: Context,
): Result<RecordedChanges> {
  const { productId, sent } = command;
  // A clock of the upstream that is ahead must not make a license look confirmed in the future.
  const confirmedBy = Math.min(command.answer.confirmedAt, context.now);
  const answer = { ...command.answer, confirmedAt: confirmedBy };
  const order = orderOf(transaction, command);
  if (order === 'replaced') leaveStore(transaction, context);
  if (order !== 'recorded' && order !== 'resumed') return done({ order, resumed: null });
  askAboutCoupons(transaction, answer, context);
  const { epoch, cursor, confirmedAt, hasMore, lastSeq: last } = answer;
  const resumed =
    order === 'resumed' ? resume(transaction, { productId, agent: sent.agent, last, epoch }, context) : null;
  // The answer has only the changes after a position that the upstream has lost.
  if (resumed !== null && !answer.isReset) return done({ order, resumed });
  const { snapshots, follows } = transaction;
  confirmTime(transaction, answer.confirmedAt);
  if (answer.isReset) snapshots.unfollowAll(productId);
  for (const licenseKey of sent.unfollow) snapshots.setFollowed(licenseKey, false);
  const refuted = new Set<string>();
  for (const { license } of answer.licenses)
    if (!recordLicense(transaction, license, { ...command, answer }, context))
      refuted.add(license.licenseKey);
  for (const licenseKey of sent.follow) if (!refuted.has(licenseKey)) snapshots.setFollowed(licenseKey, true);
  for (const licenseKey of answer.absent) recordAbsence(transaction, licenseKey, context);
  // The changes that are still to come may be older.
  const confirmed = hasMore ? (follows.get(productId)?.confirmedAt ?? 0) : confirmedAt;
  follows.put(productId, { epoch, cursor, confirmedAt: confirmed });
  return done({ order, resumed });
}

function resume(...parameters: Parameters<typeof resumePushes>): ResumedPushes | null {
  const resumed = resumePushes(...parameters);
  return resumed.ok ? resumed.value : null;
}

const askedSetting = 'sync_coupons_asked';

/**
 * An answer about followed keys shows that the upstream was restored, but not whether it has lost pushes of coupons. So the
 * last change of coupons is sent again: the upstream knows it, or says which was the last push.
 */
function askAboutCoupons(transaction: Transaction, { epoch }: { epoch: string }, { now }: Context): void {
  const { pushes, operations, settings } = transaction;
  const push = pushes.get(null) ?? noPush;
  if (push.epoch === '' || push.epoch === epoch || isOtherStore(push.epoch, epoch)) return;
  if (settings.get(askedSetting) === epoch) return;
  settings.set(askedSetting, epoch);
  questionCoupons(transaction);
  // The next push shows the same.
  if (!push.isAnswered || operations.pendingCoupons(1).length > 0) return;
  const last = operations.pushedAfter(null, 0).findLast((operation) => isResendable(operation, now));
  if (last === undefined) return;
  move(transaction, last.payload === null ? last : endAwait(last), { type: 'resume' });
}

function orderOf(
  transaction: Transaction,
  { productId, sent, answer: { lastSeq, epoch } }: RecordChanges,
): Order {
  const { pushes, operations } = transaction;
  // The answer is about another identity, or may contain changes whose fate is not known yet.
  if (agentIdOf(transaction) !== sent.agent || operations.uncertainOf(productId, 1).length > 0) return 'late';
  const { seq, isAnswered, epoch: before } = pushes.get(productId) ?? noPush;
  if (isOtherStore(before, epoch)) return 'replaced';
  const answered = answeredSeq({ pushes }, productId);
  if (lastSeq === answered)
    return isAnswered && mayHaveLost(transaction, { before, epoch }) ? 'resumed' : 'recorded';
  if (lastSeq > answered) return lastSeq === seq ? 'early' : 'ahead';
  if (lastSeq >= sent.answeredSeq) return 'late';
  // The pushes that were answered before this question are gone.
  return isAnswered && seq === sent.answeredSeq ? 'resumed' : 'lost';
}

/**
 * Returns false if the upstream, which was restored, knows an older state of the key. The key is read until the upstream
 * knows the newer state; only then the agent follows it again.
 */
function recordLicense(
  transaction: Transaction,
  license: License,
  { answer, policy }: RecordChanges,
  context: Context,
): boolean {
  const { snapshots } = transaction;
  const before = snapshots.get(license.licenseKey);
  if (before === null) return true;
  const { licenseKey } = before.license;
  // What changes about a followed key is newer. Other answers show what the upstream knew before.
  const isNews = snapshots.isFollowed(licenseKey) || license.enabled === before.license.enabled;
  if (!isNews && isOlderThanKnown(transaction, before, answer.confirmedAt)) {
    snapshots.put({ ...before, readFirst: true, refreshAt: context.monotonic });
    return false;
  }
  if (before.gone) reopenOperations(transaction, licenseKey, context);
  putSnapshot(transaction, {
    ...before,
    license: { ...before.license, ...license, licenseKey },
    confirmedAt: Math.max(before.confirmedAt, answer.confirmedAt),
    run: currentRun(transaction),
    missingSince: null,
    gone: false,
    readFirst: false,
    refreshAt: refreshAt(before, policy, context),
  });
  for (const queue of ['counter', 'state'] as const) {
    const head = transaction.operations.head(licenseKey, queue);
    if (head?.progress.state === 'pending')
      scheduleHead(transaction, licenseKey, queue, { at: context.monotonic, failures: 0 });
  }
  return true;
}

function refreshAt(
  snapshot: Pick<LicenseSnapshot, 'askedAt'>,
  policy: SyncPolicy,
  { now, monotonic, random }: Context,
): number | null {
  return nextRefreshAt(snapshot, policy, {
    now,
    monotonic,
    fraction: random.fraction(),
    readResult: 'known',
  });
}

/** The upstream does not know a key that it knew: that is evidence, and reads decide. */
function recordAbsence({ snapshots }: Transaction, licenseKey: string, { monotonic }: Context): void {
  const snapshot = snapshots.get(licenseKey);
  if (snapshot === null) return;
  snapshots.setFollowed(licenseKey, false);
  if (!snapshot.gone && snapshot.missingSince === null)
    snapshots.put({ ...snapshot, readFirst: true, refreshAt: monotonic });
}

/** Plans the next refresh of followed keys, which the upstream has confirmed without a read. */
export function confirmFollowed(
  { snapshots }: Transaction,
  { licenseKeys, policy }: { licenseKeys: readonly string[]; policy: SyncPolicy },
  context: Context,
): Result<null> {
  for (const licenseKey of licenseKeys) {
    const snapshot = snapshots.get(licenseKey);
    if (snapshot !== null) snapshots.put({ ...snapshot, refreshAt: refreshAt(snapshot, policy, context) });
  }
  return done(null);
}
