import { isTooLongKey } from '../../../domain/license.ts';
import { backoffMs } from '../../../domain/outbox/delivery.ts';
import { isPage } from '../../../domain/outbox/outcome.ts';
import { maxFollowed, maxKeysPerAgent, maxWaitS, maxWatched } from '../domain/change-feed.ts';
import { followerId } from '../service/follower-id.ts';
import type { AskForChanges, ChangesAnswer, FollowRequest } from '../service/ports.ts';
import { isLatchkey } from '../../../service/outbox/upstream/identity.ts';
import { isResuming } from '../../../service/outbox/upstream/lost-operations.ts';
import { lastCarriedOut } from '../../../service/outbox/upstream/lost-operations.ts';
import type { SyncPolicy } from '../../../service/outbox/queue.ts';
import type { Clock } from '../../../service/ports.ts';
import type { Reader } from '../../../service/tables.ts';
import type { Writer } from '../../../service/writer.ts';
import type { LicenseFetcher } from '../../../sync/license-fetcher.ts';
import { type KeyedMutex, persist } from '../../../sync/waiting.ts';
import type { UpstreamLimiter } from '../../../sync/upstream-limiter.ts';

/** The most bytes of the keys that are followed, or no longer followed, by one request. */
const batchBytes = 64 * 1024;
/** How long a request that brings nothing takes at least, with the wait after it, in ms. */
const restMs = 1_000;

type FollowParts = {
  reader: Reader;
  writer: Writer;
  changes: AskForChanges;
  clock: Clock;
  mutex: KeyedMutex;
  fetcher: Pick<LicenseFetcher, 'refresh' | 'watched' | 'appeared'>;
  limiter: UpstreamLimiter;
  settings: () => { policy: SyncPolicy; productIds: readonly string[] };
  fraction: () => number;
  onRecorded: () => void;
  lifetime: AbortSignal;
};

/** After the agent has sent everything again, it does not ask for so long whether the upstream was put back once more, in ms. */
const putBackPauseMs = 3_600_000;

/** A request that waits at the upstream. */
type Waiting = { ending: AbortController; watched: ReadonlySet<string> };

/** Follows the license keys that callers asked for: one request of each product waits at the upstream for a change. */
export class Follow {
  readonly #parts: FollowParts;
  /** The requests that wait at the upstream, by product. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #loops = new Map<string, Promise<void>>();
  /** When the agent may ask again whether the upstream was put back (monotonic ms). */
  #asksPutBackAt = -Infinity;

  constructor(parts: FollowParts) {
    this.#parts = parts;
  }

  /** Runs until the signal aborts. Rejects when the store failed. */
  async run(signal: AbortSignal): Promise<void> {
    const { reader, clock, settings } = this.#parts;
    const failed = Promise.withResolvers<never>();
    const start = async (): Promise<void> => {
      while (!signal.aborted) {
        if (isLatchkey(reader)) {
          for (const productId of settings().productIds) this.#startLoop(productId, signal, failed.reject);
        }
        this.#watchNew();
        await clock.sleep(restMs, signal).catch(() => undefined);
      }
      await Promise.all(this.#loops.values());
    };
    await Promise.race([start(), failed.promise]);
  }

  /** Follows new keys at once: a request that waits for changes ends. */
  onNewKeys(): void {
    for (const [productId, { ending }] of this.#waiting) {
      if (this.#toFollow(productId, 1).length > 0) ending.abort();
    }
  }

  /** Ends the requests that do not watch a key that is missing now. Once a second, whatever callers guess. */
  #watchNew(): void {
    for (const [productId, { ending, watched }] of this.#waiting) {
      if (this.#toWatch(productId).some((licenseKey) => !watched.has(licenseKey))) ending.abort();
    }
  }

  #startLoop(productId: string, signal: AbortSignal, fail: (error: unknown) => void): void {
    if (this.#loops.has(productId)) return;
    const loop = this.#follow(productId, signal)
      .catch((error: unknown) => {
        if (!signal.aborted) fail(error);
      })
      .finally(() => this.#loops.delete(productId));
    this.#loops.set(productId, loop);
  }

  /** Ends when the product is removed, or when another upstream is configured. */
  async #follow(productId: string, signal: AbortSignal): Promise<void> {
    const { reader, clock, settings, limiter } = this.#parts;
    const isOn = (): boolean =>
      !signal.aborted && isLatchkey(reader) && settings().productIds.includes(productId);
    let failures = 0;
    while (isOn()) {
      const canAsk =
        !isResuming(reader) &&
        limiter.isAccepted(productId) &&
        (await limiter.admit('refresh', signal)).admitted;
      const isDone = canAsk && (await this.#askOnce(productId, signal));
      failures = isDone || !canAsk ? 0 : failures + 1;
      if (!isDone) await clock.sleep(this.#restMs(failures), signal).catch(() => undefined);
    }
  }

  /** `failures`: requests in a row that brought nothing. */
  #restMs(failures: number): number {
    const { settings, fraction } = this.#parts;
    const { backoff } = settings().policy;
    return Math.max(restMs, failures === 0 ? 0 : backoffMs(backoff, failures, fraction()));
  }

  /** Asks once. False: nothing was brought. */
  async #askOnce(productId: string, signal: AbortSignal): Promise<boolean> {
    const { reader, changes, clock, limiter, fetcher, lifetime } = this.#parts;
    if (followerId(reader) === null) await this.#makeFollowerId();
    const agent = followerId(reader);
    if (agent === null) return false;
    const request = this.#requestFor(productId);
    const waiting = new AbortController();
    const watched = new Set(request.watch);
    if (request.waitS > 0) this.#waiting.set(productId, { ending: waiting, watched });
    const sentAt = clock.monotonic();
    const ending = AbortSignal.any([lifetime, waiting.signal, signal]);
    const outcome = await changes(productId, agent, request, ending);
    this.#waiting.delete(productId);
    // This process ended the request: that says nothing about the upstream.
    if (waiting.signal.aborted) return true;
    if (signal.aborted) return false;
    // A gateway that hides the change feed says nothing about the upstream.
    if (isPage(outcome)) return false;
    limiter.observe(outcome, { owner: productId, subject: `changes ${productId}`, sentAt });
    if (outcome.outcome !== 'applied') return false;
    // The upstream names no other keys, so it cannot make this agent read them.
    const appeared = outcome.value.appeared.filter((licenseKey) => watched.has(licenseKey));
    for (const licenseKey of new Set(appeared)) fetcher.appeared(productId, licenseKey);
    if (outcome.value.isPutBack) this.#asksPutBackAt = clock.monotonic() + putBackPauseMs;
    const isRecorded = await this.#record(productId, request, outcome.value, signal);
    // An upstream with too many connections answers before the wait is over.
    const restsMs = sentAt + restMs - clock.monotonic();
    if (isRecorded && request.waitS > 0 && isEmpty({ ...outcome.value, appeared }) && restsMs > 0)
      await clock.sleep(restsMs, signal).catch(() => undefined);
    return isRecorded;
  }

  #requestFor(productId: string): FollowRequest {
    const { reader, clock, fraction, limiter } = this.#parts;
    const { epoch = null, cursor = null } = reader.follows.get(productId) ?? {};
    const follow = withinBytes(this.#toFollow(productId, maxFollowed));
    const unfollow = withinBytes(reader.snapshots.toUnfollow(productId, maxFollowed));
    // A fleet that was cut off at once must not come back at once.
    const wait = follow.length + unfollow.length > 0 ? 0 : Math.round(maxWaitS * (1 - fraction() / 16));
    const carriedOut =
      clock.monotonic() < this.#asksPutBackAt
        ? null
        : lastCarriedOut(reader, productId, { now: clock.now(), since: limiter.credentialsSince });
    return { epoch, cursor, follow, unfollow, watch: this.#toWatch(productId), carriedOut, waitS: wait };
  }

  /** No Latchkey sells a longer key, so a request is never too long because of what callers guess. */
  #toWatch(productId: string): readonly string[] {
    const missing = this.#parts.fetcher.watched(productId).filter((licenseKey) => !isTooLongKey(licenseKey));
    return withinBytes(missing.slice(0, maxWatched));
  }

  /** Other keys are read in turn: a request to follow more than the upstream allows would be refused as a whole. */
  #toFollow(productId: string, limit: number): readonly string[] {
    const { snapshots } = this.#parts.reader;
    const some = snapshots.toFollow(productId, limit);
    return some.length === 0
      ? some
      : some.slice(0, Math.max(0, maxKeysPerAgent - snapshots.followedCount(productId)));
  }

  async #makeFollowerId(): Promise<void> {
    const { writer, clock, lifetime } = this.#parts;
    await persist(clock, lifetime, () => writer.write('makeFollowerId', {}));
  }

  /** While a request about a key is under way, what the upstream says about the key waits for the answer. */
  async #record(
    productId: string,
    sent: FollowRequest,
    answer: ChangesAnswer,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { reader, writer, clock, settings, mutex, fetcher, onRecorded, lifetime } = this.#parts;
    using guards = new DisposableStack();
    const keys = answer.licenses.map(
      ({ license: { licenseKey } }) => reader.snapshots.get(licenseKey)?.license.licenseKey ?? licenseKey,
    );
    for (const key of new Set(keys)) guards.use(await mutex.enter(key, ['counter', 'state'], signal));
    const { policy } = settings();
    const recorded = await persist(clock, lifetime, () =>
      writer.write('recordChanges', { productId, sent, answer, policy }),
    );
    if (!recorded.ok) return false;
    guards.dispose();
    for (const licenseKey of recorded.value.keysToRead) fetcher.refresh(productId, licenseKey);
    onRecorded();
    return true;
  }
}

function isEmpty({ licenses, absent, appeared, hasMore, isReset, isPutBack }: ChangesAnswer): boolean {
  const isSilent = licenses.length === 0 && absent.length === 0 && appeared.length === 0;
  return isSilent && !hasMore && !isReset && !isPutBack;
}

/** The first keys that fit into a request. There is at least one, if there are any. */
function withinBytes(licenseKeys: readonly string[]): readonly string[] {
  let bytes = 0;
  const end = licenseKeys.findIndex((licenseKey, index) => {
    // A character takes at most three bytes in UTF-8, and is escaped as six.
    bytes += 3 + 6 * licenseKey.length;
    return index > 0 && bytes > batchBytes;
  });
  return end === -1 ? licenseKeys : licenseKeys.slice(0, end);
}
