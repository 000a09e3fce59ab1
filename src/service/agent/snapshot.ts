import { done, type Result, failWith } from '../../domain/problem/problem.ts';
import { nextRefreshAt, type LicenseSnapshot } from '../../domain/agent/license-snapshot.ts';
import type { SyncPolicy } from '../outbox/queue.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';
import { maxPreloadKeys, type PreloadOutcome } from '../../domain/agent/preload.ts';

/** Notes that a caller asked for a key, so that the agent keeps refreshing the key. */
export function touchSnapshot(
  transaction: Transaction,
  { licenseKey }: { licenseKey: string },
  { now, monotonic }: Context,
): Result<null> {
  transaction.snapshots.touch(licenseKey, now, monotonic);
  return done(null);
}

/**
 * Makes the next refresh of a license key due at once, also after a restart: a read that was asked for did not bring an
 * answer.
 */
export function hastenRefresh(
  { snapshots }: Transaction,
  { licenseKey }: { licenseKey: string },
  { monotonic }: Context,
): Result<null> {
  const snapshot = snapshots.get(licenseKey);
  if (snapshot !== null) snapshots.put({ ...snapshot, refreshAt: monotonic });
  return done(null);
}

/** When a license key is refreshed next whose snapshot the upstream has just confirmed. */
export function refreshAfter(
  snapshot: Pick<LicenseSnapshot, 'askedAt'>,
  policy: SyncPolicy,
  { now, monotonic, random }: Context,
): number | null {
  const fraction = random.fraction();
  return nextRefreshAt(snapshot, policy, { now, monotonic, fraction, readResult: 'known' });
}

/** Plans the next refresh of followed keys, which the upstream has confirmed without a read. */
export function confirmFollowed(
  { snapshots }: Transaction,
  { licenseKeys, policy }: { licenseKeys: readonly string[]; policy: SyncPolicy },
  context: Context,
): Result<null> {
  for (const licenseKey of licenseKeys) {
    const snapshot = snapshots.get(licenseKey);
    if (snapshot !== null) snapshots.put({ ...snapshot, refreshAt: refreshAfter(snapshot, policy, context) });
  }
  return done(null);
}

/** Queues license keys to be fetched, so that they can be answered offline. The progress restarts if none is left. */
export function queuePreload(
  { preload }: Transaction,
  { licenseKeys, productKey }: { licenseKeys: readonly string[]; productKey: string | null },
): Result<{ queued: number }> {
  const { left } = preload.progress();
  const keys = new Set(licenseKeys);
  if (left + keys.size > maxPreloadKeys) {
    return failWith('storage_full', `At most ${maxPreloadKeys} license keys can wait for preloading.`);
  }
  if (left === 0) preload.clear();
  for (const licenseKey of keys) preload.add({ licenseKey, productId: productKey });
  return done({ queued: keys.size });
}

export function recordPreload(
  { preload }: Transaction,
  { outcomes }: { outcomes: readonly PreloadOutcome[] },
): Result<null> {
  for (const { licenseKey, found } of outcomes) {
    if (found === 'unreachable') preload.postpone(licenseKey);
    else preload.finish(licenseKey, found === 'found');
  }
  return done(null);
}
