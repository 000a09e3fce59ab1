import { done, failWith, type Result } from '../../domain/problem/problem.ts';
import { agentRetentionMs } from '../../domain/latchkey.ts';
import { dayMs } from '../../domain/time.ts';
import type { Context, Idempotency, Keyed } from '../ports.ts';
import type { AuthorityReader, AuthorityTransaction, Reader } from '../tables.ts';
import type { HistoryEntry, LicenseState, License } from '../../domain/license.ts';

/** 8 days, so that 7 days are certain. */
const idempotencyRetentionMs = 8 * 24 * 3_600_000;

/**
 * Limits the stored responses to requests that changed nothing, per credential. No queue limits such requests, so a
 * caller could fill the disk. Each such request counts the stored ones, so there must be few.
 */
export const maxUnchangedResponses = 10_000;

/**
 * The first successful result under an idempotency key. A different request under the same key is refused
 * (draft-ietf-httpapi-idempotency-key-header). Null if no result is stored.
 */
export async function storedResult(
  transaction: AuthorityTransaction,
  asked: Idempotency,
  { now }: Pick<Context, 'now'>,
): Promise<unknown> {
  const { credential, key, fingerprint, keyed } = asked;
  const stored = await transaction.idempotency.get(credential, key);
  if (stored === null) return keyed === undefined ? null : await refuseIfForgotten(transaction, keyed);
  if (stored.fingerprint !== fingerprint)
    return failWith('idempotency_key_reused', 'This idempotency key was used for another request.');
  if (keyed !== undefined)
    await transaction.idempotency.renew(credential, key, keptUntil(asked, now), renewEveryMs);
  return stored.value;
}

/** The clock of an agent may be this much ahead of the clock here, in ms. */
const aheadMs = dayMs;

/** Until which instant the answers to agents that were last asked for have perhaps been removed (epoch ms). */
const prunedSetting = 'keyed_answers_pruned';

/** A repeated change whose answer was perhaps removed must not be carried out: it may count twice. */
export async function refuseIfForgotten(
  { settings }: Pick<AuthorityReader, 'settings'>,
  { isRepeat, createdAt }: Keyed,
): Promise<Result<never> | null> {
  if (!isRepeat) return null;
  const pruned = Number((await settings.get(prunedSetting)) ?? -Infinity);
  if (createdAt >= pruned + aheadMs) return null;
  return failWith('too_old_to_know', 'Nothing shows any more whether this change was carried out.');
}

/** The answer to an agent is kept from the last time that it was asked for. Its date is written once a day at most. */
const renewEveryMs = dayMs;

/** Until when a response is kept (epoch ms). */
export function keptUntil({ keyed }: Idempotency, now: number): number {
  return now + (keyed === undefined ? idempotencyRetentionMs : agentRetentionMs);
}

/** Whether the store has a response under the idempotency key. */
export function hasStoredResponse({ idempotency }: Reader, asked: Idempotency | null): boolean {
  return asked !== null && idempotency.get(asked.credential, asked.key) !== null;
}

/** Stores a successful result, or `short` in its place, under its idempotency key; returns a refusal if it cannot be stored, else null. */
export async function storeResult(
  transaction: AuthorityTransaction,
  idempotency: Idempotency,
  { result, short }: { result: Result<unknown>; short: number | null },
  { now }: Context,
): Promise<Result<never> | null> {
  const { credential, key, fingerprint, keyed } = idempotency;
  // The operations of an agent are limited by its outbox.
  const unchanged = keyed === undefined && result.ok && result.unchanged === true;
  if (unchanged && (await transaction.idempotency.unchangedCount(credential)) >= maxUnchangedResponses) {
    const detail = 'This credential has sent too many changes under idempotency keys that change nothing.';
    return failWith('storage_full', detail);
  }
  const until = keptUntil(idempotency, now);
  await transaction.idempotency.put(credential, key, {
    fingerprint,
    value: short ?? result,
    until,
    unchanged,
  });
  return null;
}

/** Does nothing but add its audit entry: a person ended or reloaded the process. */
export function recordProcessAct(
  _transaction: AuthorityTransaction,
  _command: { act: 'stop' | 'reload'; detail: string },
): Result<null> {
  return done(null);
}

/** Replaces the response of the commit by the response that the caller got after waiting (`Prefer: wait`). */
export async function storeFinalResponse(
  transaction: AuthorityTransaction,
  { idempotency, value }: { idempotency: Idempotency; value: unknown },
  { now }: Context,
): Promise<Result<null>> {
  const { credential, key, fingerprint } = idempotency;
  const until = keptUntil(idempotency, now);
  await transaction.idempotency.replace(credential, key, { fingerprint, value: done(value), until });
  return done(null);
}

/**
 * Removes up to `limit` stored responses after 8 days, and those to agents after 30 days. If the clock jumped ahead and was
 * set back, responses may be kept for too long. They are kept for 30 days from now, or they would stay for as long as the
 * jump was. Returns how many were removed or dated. `removalTime`: epoch ms (domain/time.ts).
 */
export async function pruneIdempotency(
  transaction: AuthorityTransaction,
  { removalTime, limit }: { removalTime: number; limit: number },
  { now }: Pick<Context, 'now'>,
): Promise<Result<{ removed: number }>> {
  const { idempotency, settings } = transaction;
  const dated = await idempotency.keepUntilAtMost(now + agentRetentionMs, limit);
  const removed = await idempotency.prune(removalTime, limit);
  if (removed > 0) await settings.set(prunedSetting, String(removalTime - agentRetentionMs));
  return done({ removed: dated + removed });
}

/** Nothing is committed for a refusal. */
export function isFailure(result: unknown): boolean {
  return typeof result === 'object' && result !== null && 'ok' in result && result.ok === false;
}

/** Adds a change of a license to its history, unless `history.keep` is 0. */
export function recordChange<Added>(
  history: { add(change: HistoryEntry): Added },
  { change, before, after }: Pick<HistoryEntry, 'change'> & { before: License; after: LicenseState },
  { now, actor, recordsHistory }: Context,
): Added | undefined {
  if (!recordsHistory) return undefined;
  return history.add({
    licenseKey: before.licenseKey,
    at: now,
    change,
    credential: actor,
    before: { uses: before.uses, enabled: before.enabled },
    after: { uses: after.uses, enabled: after.enabled },
  });
}

/** Removes up to `limit` changes from before an instant; returns how many. */
export async function pruneHistory(
  { history }: AuthorityTransaction,
  { before, limit }: { before: number; limit: number },
): Promise<Result<{ removed: number }>> {
  return done({ removed: await history.prune(before, limit) });
}
