import { done, failWith, type Result } from '../domain/problem/problem.ts';
import { agentRetentionMs } from '../domain/latchkey.ts';
import { dayMs } from '../domain/time.ts';
import type { Context, Idempotency, Keyed } from './ports.ts';
import type { AuthorityReader, AuthorityTransaction, Reader } from './tables.ts';

/** 8 days, so that 7 days are certain. */
const idempotencyRetentionMs = 8 * dayMs;

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

/**
 * Stores a successful result under its idempotency key. `short`: is stored in its place; null: the whole result is. Returns
 * `storage_full` if the credential has too many stored results that changed nothing, else null.
 */
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
 * jump was. Returns how many were removed or dated. `removalTime`: epoch ms (domain/clock.ts).
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
