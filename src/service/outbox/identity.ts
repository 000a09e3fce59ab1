import { eventOfLoss, isLicenseKind } from '../../domain/outbox/operation.ts';
import { storeOf } from '../../domain/sync/push.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import type { Context, KnownAnswer } from '../ports.ts';
import type { Reader, Transaction } from '../tables.ts';
import { forgetIdentity, forgetPushes, agentIdOf } from './agent-id.ts';
import { questionAll } from './reconcile.ts';
import { licenseKeysOf, move, putSnapshot, queueOfOperation, scheduleHead } from './queue.ts';

/*
 * An agent whose store was restored or copied gets another id at its upstream. Then it asks what became of every change
 * that is not finished: the upstream knows operations by their ids. (src/sync/README.md, Between Latchkeys)
 */

/** Begins a new identity at an upstream that speaks `/sync/v1`. Every unfinished change is uncertain until it is known. */
export function beginIdentity(transaction: Transaction): void {
  forgetIdentity(transaction);
  questionAll(transaction, { isKnown: true });
}

/** Whether an epoch is of another store than the epoch of the last answer (empty: there was none). */
export function isOtherStore(before: string, epoch: string): boolean {
  return before !== '' && storeOf(before) !== storeOf(epoch);
}

const replaced = 'its push was not answered when another store took the place of the upstream';

/**
 * Another store is at the address of the upstream: one into which the licenses were imported, or a new one. It may contain the
 * changes of pushes that were not answered, so a person decides about them. A disable is sent again.
 */
export function leaveStore(transaction: Transaction, { monotonic }: Pick<Context, 'monotonic'>): void {
  const { operations } = transaction;
  for (const operation of operations.withState('in_flight')) {
    const lost = move(transaction, { ...operation, lastError: replaced }, eventOfLoss(operation));
    if (lost.progress.state === 'uncertain') move(transaction, lost, { type: 'hold' });
    scheduleHead(transaction, operation.subject, queueOfOperation(operation), { at: monotonic });
  }
  forgetPushes(transaction);
}

/** Another process has sent pushes of this agent, or this store is older than the last push. `agent`: its id so far. */
export function renewIdentity(
  transaction: Transaction,
  { agent }: { agent: string },
  context: Context,
): Result<null> {
  if (agentIdOf(transaction) !== agent) return done(null);
  beginIdentity(transaction);
  noteConflict(transaction, context);
  return done(null);
}

const conflictSetting = 'push_conflict_at';

/** Remembers that the upstream knew pushes that this store does not know. */
export function noteConflict({ settings }: Transaction, { now }: Pick<Context, 'now'>): void {
  settings.set(conflictSetting, String(now));
}

/** When the upstream last knew pushes that this store does not know (epoch ms); null: never. */
export function lastConflictAt({ settings }: Pick<Reader, 'settings'>): number | null {
  const at = settings.get(conflictSetting);
  return at === null ? null : Number(at);
}

type RecordKnown = { results: KnownAnswer };

const tooOld = 'the upstream no longer knows whether it was applied: it is too old';

/** Records what became of uncertain operations. */
export function recordKnown(
  transaction: Transaction,
  { results }: RecordKnown,
  context: Context,
): Result<{ settled: number }> {
  const { operations, snapshots } = transaction;
  const settled = results.flatMap(({ id, outcome, code }) => {
    const operation = operations.get(id);
    if (operation?.progress.state !== 'uncertain') return [];
    if (outcome === 'too_old') {
      move(transaction, { ...operation, lastError: tooOld }, { type: 'hold' });
    } else if (!isLicenseKind(operation.kind)) {
      // The answer to its push says more, such as the id of the coupon, and the upstream carries nothing out twice.
      move(transaction, operation, { type: 'known', was: 'not_seen', at: context.now });
    } else if (outcome === 'conflicted') {
      move(transaction, { ...operation, lastError: `the upstream answered ${code}` }, { type: 'conflict' });
    } else {
      const lastError = outcome === 'refused' ? `the upstream answered ${code}` : operation.lastError;
      move(transaction, { ...operation, lastError }, { type: 'known', was: outcome, at: context.now });
    }
    return [operation];
  });
  for (const subject of licenseKeysOf(settled)) {
    const snapshot = snapshots.get(subject);
    // What the upstream last said may or may not contain the operations.
    if (snapshot === null) continue;
    putSnapshot(transaction, { ...snapshot, refreshAt: context.monotonic });
    snapshots.setFollowed(subject, false);
  }
  for (const operation of settled)
    scheduleHead(transaction, operation.subject, queueOfOperation(operation), { at: context.monotonic });
  return done({ settled: settled.length });
}
