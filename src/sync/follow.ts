import { isTooLongKey } from '../domain/license.ts';
import { backoffMs } from '../domain/outbox/delivery.ts';
import { maxFollowed, maxKeysPerAgent, maxWaitS } from '../domain/sync/push.ts';
import { protocolOf } from '../service/outbox/protocol.ts';
import { agentIdOf } from '../service/outbox/agent-id.ts';
import { answeredSeq } from '../service/outbox/journal.ts';
import type { SyncPolicy } from '../service/outbox/queue.ts';
import type { ChangesAnswer, Clock, FollowRequest, Log, SyncUpstream } from '../service/ports.ts';
import type { Reader } from '../service/tables.ts';
import type { Writer } from '../service/writer.ts';
import { logResumed } from './batch-push.ts';
import type { LicenseFetcher } from './license-fetcher.ts';
import { persist } from './waiting.ts';
import type { UpstreamLimiter } from './upstream-limiter.ts';

/** The most bytes of the keys that are followed, or no longer followed, by one request. */
const batchBytes = 64 * 1024;
/** How long a request that brings nothing takes at least, with the wait after it, in ms. */
const restMs = 1_000;

type FollowParts = {
  reader: Reader;
  writer: Writer;
  syncUpstream: SyncUpstream;
  clock: Clock;
  log: Log;
  fetcher: Pick<LicenseFetcher, 'watched' | 'appeared'>;
  limiter: UpstreamLimiter;
  settings: () => { policy: SyncPolicy; productIds: readonly string[] };
  fraction: () => number;
  /** Resolves when the push of a product that is under way is answered. */
  pushed: (productId: string, signal: AbortSignal) => Promise<void>;
  onRecorded: () => void;
  lifetime: AbortSignal;
};

/** A request that waits at the upstream. */
type Waiting = { ending: AbortController; watched: ReadonlySet<string> };

/** Follows the license keys that callers asked for: one request of each product waits at the upstream for a change. */
export class Follow {
  readonly #parts: FollowParts;
  /** The requests that wait at the upstream, by product. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #loops = new Map<string, Promise<void>>();

  constructor(parts: FollowParts) {
    this.#parts = parts;
  }

  /** Runs until the signal aborts. Rejects when the store failed. */
  async run(signal: AbortSignal): Promise<void> {
    const { reader, clock, settings } = this.#parts;
    const failed = Promise.withResolvers<never>();
    const start = async (): Promise<void> => {
      while (!signal.aborted) {
        if (protocolOf(reader) === 'latchkey') {
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
  followNew(): void {
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

  /** Ends when the product is removed, or when the plain protocol is chosen. */
  async #follow(productId: string, signal: AbortSignal): Promise<void> {
    const { reader, clock, settings, limiter } = this.#parts;
    const isOn = (): boolean =>
      !signal.aborted && protocolOf(reader) === 'latchkey' && settings().productIds.includes(productId);
    let failures = 0;
    while (isOn()) {
      // Before it is known what became of uncertain changes, no license can be shown with them.
      const isKnown = reader.operations.uncertainOf(productId, 1).length === 0;
      const canAsk =
        isKnown && limiter.isAccepted(productId) && (await limiter.admit('refresh', signal)).admitted;
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
    const { reader, syncUpstream, clock, limiter, fetcher, lifetime } = this.#parts;
    if (agentIdOf(reader) === null) await this.#makeAgentId();
    const agent = agentIdOf(reader);
    if (agent === null) return false;
    const request = this.#requestFor(productId);
    const waiting = new AbortController();
    const watched = new Set(request.watch);
    if (request.waitS > 0) this.#waiting.set(productId, { ending: waiting, watched });
    const sentAt = clock.monotonic();
    const sent = { ...request, agent, answeredSeq: answeredSeq(reader, productId) };
    const ending = AbortSignal.any([lifetime, waiting.signal, signal]);
    const outcome = await syncUpstream.changes(productId, agent, request, ending);
    this.#waiting.delete(productId);
    // This process ended the request: that says nothing about the upstream.
    if (waiting.signal.aborted) return true;
    if (signal.aborted) return false;
    limiter.observe(outcome, { owner: productId, subject: `changes ${productId}`, sentAt });
    if (outcome.outcome !== 'applied') return false;
    // The upstream names no other keys, so it cannot make this agent read them.
    const appeared = outcome.value.appeared.filter((licenseKey) => watched.has(licenseKey));
    for (const licenseKey of new Set(appeared)) fetcher.appeared(productId, licenseKey);
    const isRecorded = await this.#record(productId, sent, outcome.value, signal);
    // An upstream with too many connections answers before the wait is over.
    const restsMs = sentAt + restMs - clock.monotonic();
    if (isRecorded && request.waitS > 0 && isEmpty({ ...outcome.value, appeared }) && restsMs > 0)
      await clock.sleep(restsMs, signal).catch(() => undefined);
    return isRecorded;
  }

  #requestFor(productId: string): FollowRequest {
    const { reader, fraction } = this.#parts;
    const { epoch = null, cursor = null } = reader.follows.get(productId) ?? {};
    const follow = withinBytes(this.#toFollow(productId, maxFollowed));
    const unfollow = withinBytes(reader.snapshots.toUnfollow(productId, maxFollowed));
    // A fleet that was cut off at once must not come back at once.
    const wait = follow.length + unfollow.length > 0 ? 0 : Math.round(maxWaitS * (1 - fraction() / 16));
    return { epoch, cursor, follow, unfollow, watch: this.#toWatch(productId), waitS: wait };
  }

  /** No Latchkey sells a longer key, so a request is never too long because of what callers guess. */
  #toWatch(productId: string): readonly string[] {
    return withinBytes(
      this.#parts.fetcher.watched(productId).filter((licenseKey) => !isTooLongKey(licenseKey)),
    );
  }

  /** Other keys are read in turn: a request to follow more than the upstream allows would be refused as a whole. */
  #toFollow(productId: string, limit: number): readonly string[] {
    const { snapshots } = this.#parts.reader;
    const some = snapshots.toFollow(productId, limit);
    return some.length === 0
      ? some
      : some.slice(0, Math.max(0, maxKeysPerAgent - snapshots.followedCount(productId)));
  }

  async #makeAgentId(): Promise<void> {
    const { writer, clock, lifetime } = this.#parts;
    await persist(clock, lifetime, () => writer.write('makeAgentId', {}));
  }

  async #record(
    productId: string,
    sent: FollowRequest & { agent: string; answeredSeq: number },
    answer: ChangesAnswer,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { writer, clock, log, settings, pushed, onRecorded, lifetime } = this.#parts;
    for (;;) {
      const { policy } = settings();
      const recorded = await persist(clock, lifetime, () =>
        writer.write('recordChanges', { productId, sent, answer, policy }),
      );
      if (!recorded.ok || recorded.value.order === 'lost') return false;
      const { order, resumed } = recorded.value;
      if (order === 'late') return true;
      if (order === 'replaced') {
        log.warn({ product: productId }, 'another store is at the address of the upstream');
        return false;
      }
      if (order === 'ahead') {
        log.error(
          { product: productId },
          'the upstream knows pushes of this agent that this store does not know',
        );
        await persist(clock, lifetime, () => writer.write('renewIdentity', { agent: sent.agent }));
        // The upstream knows nothing of another identity. If it says so again, it is ill.
        return false;
      }
      if (resumed !== null) logResumed(log, productId, resumed);
      if (order === 'recorded' || order === 'resumed') {
        onRecorded();
        return true;
      }
      await pushed(productId, signal);
      signal.throwIfAborted();
    }
  }
}

function isEmpty({ licenses, absent, appeared, hasMore, isReset }: ChangesAnswer): boolean {
  return licenses.length === 0 && absent.length === 0 && appeared.length === 0 && !hasMore && !isReset;
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
