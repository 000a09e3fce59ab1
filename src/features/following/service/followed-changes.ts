import type { License } from '../../../domain/license.ts';
import { done, type Result } from '../../../domain/problem/problem.ts';
import { confirmTime } from '../../../service/lifecycle/time-mark.ts';
import type { Context } from '../../../service/ports.ts';
import type { Transaction } from '../../../service/tables.ts';
import { putSnapshot, scheduleHead, type SyncPolicy } from '../../../service/outbox/queue.ts';
import { refreshAfter } from '../../../service/agent/snapshot.ts';
import { reopenOperations } from '../../../service/outbox/after-response.ts';
import { isStale, seenAfter } from '../../../service/outbox/latchkey-response.ts';
import { observeOlderStore, observeEpoch } from '../../../service/outbox/upstream/change.ts';
import type { ChangesAnswer, FollowRequest } from './ports.ts';

/*
 * Followed license keys: the upstream says what changes about them, and an answer without changes confirms all of them.
 * (src/sync/BETWEEN-LATCHKEYS.md, The change feed)
 */

type RecordChanges = {
  productId: string;
  sent: Pick<FollowRequest, 'follow' | 'unfollow'>;
  answer: ChangesAnswer;
  policy: SyncPolicy;
};

/** `keysToRead`: only a read can decide about them. */
export type RecordedChanges = { keysToRead: readonly string[] };

/** Records what the upstream says about followed keys. No request about one of the keys is under way meanwhile. */
export function recordChanges(
  transaction: Transaction,
  { productId, sent, answer, policy }: RecordChanges,
  context: Context,
): Result<RecordedChanges> {
  const { snapshots, follows } = transaction;
  const { epoch, cursor, hasMore } = answer;
  observeEpoch(transaction, { epoch }, context);
  if (answer.isPutBack) {
    observeOlderStore(transaction);
    return done({ keysToRead: [] });
  }
  const confirmedAt = confirmTime(transaction, answer.confirmedAt, context);
  const { follow, unfollow } = answer.isReset ? { follow: [], unfollow: [] } : sent;
  if (answer.isReset) snapshots.unfollowAll(productId);
  for (const licenseKey of unfollow) snapshots.setFollowed(licenseKey, false);
  for (const licenseKey of follow) snapshots.setFollowed(licenseKey, true);
  const said = answer.licenses.map(({ license, revision }) => ({ ...license, revision }));
  const unsure = said.filter(
    (license) => !recordLicense(transaction, license, { confirmedAt, policy }, context),
  );
  const missing = answer.absent.filter((licenseKey) => isMissed(transaction, licenseKey));
  const keysToRead = [...unsure.map(({ licenseKey }) => licenseKey), ...missing];
  for (const licenseKey of keysToRead) readSoon(transaction, licenseKey, context);
  // The changes that are still to come may be older.
  const confirmed = hasMore ? (follows.get(productId)?.confirmedAt ?? 0) : confirmedAt;
  follows.put(productId, { epoch, cursor, confirmedAt: confirmed });
  return done({ keysToRead });
}

/** Returns false if only a read can decide. */
function recordLicense(
  transaction: Transaction,
  license: License,
  { confirmedAt, policy }: { confirmedAt: number; policy: SyncPolicy },
  context: Context,
): boolean {
  const { snapshots, operations } = transaction;
  const before = snapshots.get(license.licenseKey);
  if (before === null) return true;
  const { licenseKey } = before.license;
  // The answer to a change or a read was quicker, or the store of the upstream was put back by hand.
  if (isStale(transaction, before, license)) return false;
  if (before.gone) reopenOperations(transaction, licenseKey, context);
  const seen = seenAfter(transaction, before, { license, confirmedAt }, context);
  if (seen.readFirst) return false;
  putSnapshot(transaction, { ...seen, refreshAt: refreshAfter(before, policy, context) });
  for (const queue of ['counter', 'state'] as const) {
    const head = operations.head(licenseKey, queue);
    if (head?.progress.state === 'pending')
      scheduleHead(transaction, licenseKey, queue, { at: context.monotonic, failures: 0 });
  }
  return true;
}

/** The upstream does not know a key that it knew: that is evidence, and reads decide. */
function isMissed({ snapshots }: Transaction, licenseKey: string): boolean {
  const snapshot = snapshots.get(licenseKey);
  if (snapshot === null) return false;
  snapshots.setFollowed(snapshot.license.licenseKey, false);
  return !snapshot.gone && snapshot.missingSince === null;
}

/** The key is not followed before the read. */
function readSoon(
  { snapshots }: Transaction,
  licenseKey: string,
  { monotonic }: Pick<Context, 'monotonic'>,
): void {
  const snapshot = snapshots.get(licenseKey);
  if (snapshot === null) return;
  snapshots.setFollowed(snapshot.license.licenseKey, false);
  snapshots.put({ ...snapshot, readFirst: true, refreshAt: monotonic });
}
