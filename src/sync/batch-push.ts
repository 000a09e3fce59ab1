import { backoffMs, type BackoffPolicy } from '../domain/outbox/delivery.ts';
import { isLicenseKind, queueOf, type Operation, type QueueName } from '../domain/outbox/operation.ts';
import { isMissing, notApplied, type Applied, type Outcome } from '../domain/outbox/outcome.ts';
import type { Reach } from '../domain/sync/push.ts';
import { agentIdOf } from '../service/outbox/agent-id.ts';
import type { PlannedPush, ResumedPushes } from '../service/outbox/push.ts';
import type { SyncPolicy } from '../service/outbox/queue.ts';
import type { Clock, Log, PushAnswer, PushLimits, SyncUpstream } from '../service/ports.ts';
import type { UpstreamMeter } from '../service/status.ts';
import type { Reader } from '../service/tables.ts';
import { formatDatetime } from '../domain/time.ts';
import type { Writer } from '../service/writer.ts';
import type { LicenseFetcher } from './license-fetcher.ts';
import { type KeyedMutex, type MutexGuard, persist, raceWithAbort } from './waiting.ts';
import type { UpstreamLimiter } from './upstream-limiter.ts';

type BatchPushParts = {
  reader: Reader;
  writer: Writer;
  syncUpstream: SyncUpstream;
  clock: Clock;
  log: Log;
  meter: Pick<UpstreamMeter, 'pushed'>;
  mutex: KeyedMutex;
  limiter: UpstreamLimiter;
  fetcher: Pick<LicenseFetcher, 'refresh'>;
  settings: () => { policy: SyncPolicy; productIds: readonly string[] };
  limits: () => PushLimits;
  /** In [0, 1), for jitter. */
  fraction: () => number;
  /** Ends requests under way. */
  lifetime: AbortSignal;
};

type Failed = Exclude<Outcome<never>, Applied<never>>;

/**
 * How far a reach has got. `failures`: attempts that failed in a row; `retryAt`: monotonic ms. `isRefused`: the last one
 * failed because its credential was refused.
 */
type Attempts = { failures: number; retryAt: number; isRefused: boolean };

/**
 * Delivers changes to an upstream that speaks `/sync/v1`: one push of each product, and one of coupons, at a time, repeated
 * until it is answered.
 */
export class BatchPush {
  readonly #parts: BatchPushParts;
  readonly #active = new Map<Reach, Promise<void>>();
  readonly #attempts = new Map<Reach, Attempts>();
  /** Calls that wait for the end of a push. */
  readonly #waiting = new Set<() => void>();

  constructor(parts: BatchPushParts) {
    this.#parts = parts;
  }

  /** Starts a push for each reach that has something to send. Returns for how long nothing can be started, in ms. */
  startDue(signal: AbortSignal, onEnd: (error: unknown) => void): number {
    const { clock, limiter, settings } = this.#parts;
    const now = clock.monotonic();
    const admission = limiter.admission();
    if (!admission.admitted) return admission.againAt === null ? Infinity : admission.againAt - now;
    const waits = [...settings().productIds, null].map((productId) => {
      if (this.#active.has(productId) || !limiter.isAccepted(productId)) return Infinity;
      const waitMs = this.#dueIn(productId, now);
      if (waitMs > 0) return waitMs;
      this.#start(productId, signal, onEnd);
      return Infinity;
    });
    return Math.min(Infinity, ...waits);
  }

  /** Resolves when the pushes under way are over. */
  async settled(): Promise<void> {
    await Promise.all(this.#active.values());
  }

  /** Whether the last attempt to send a push of the reach has failed. */
  isFailing(productId: Reach): boolean {
    return this.#attempts.has(productId);
  }

  /** Ends the waits after an outage. A credential may be accepted for reads, and refused for pushes again and again. */
  endOutage(): void {
    for (const attempts of this.#attempts.values()) if (!attempts.isRefused) attempts.retryAt = 0;
  }

  /** Ends the waits after failed attempts. */
  endBackoff(): void {
    for (const attempts of this.#attempts.values()) attempts.retryAt = 0;
  }

  /** Resolves when a push of the product has ended; at once if none is unanswered. */
  async pushed(productId: Reach, signal: AbortSignal): Promise<void> {
    if (this.#parts.reader.pushes.get(productId)?.isAnswered !== false) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    await raceWithAbort(promise, signal).finally(() => this.#waiting.delete(resolve));
  }

  #dueIn(productId: Reach, now: number): number {
    const { reader } = this.#parts;
    const { retryAt } = this.#attempts.get(productId) ?? { retryAt: 0 };
    if (retryAt > now) return retryAt - now;
    if (reader.pushes.get(productId)?.isAnswered === false) return 0;
    if (reader.operations.uncertainOf(productId, 1).length > 0) return 0;
    if (productId === null) return reader.operations.pendingCoupons(1).length > 0 ? 0 : Infinity;
    if (reader.operations.due(now, 1, (owner) => owner === productId).length > 0) return 0;
    return (reader.operations.nextDueAt(now) ?? Infinity) - now;
  }

  #start(productId: Reach, signal: AbortSignal, onEnd: (error: unknown) => void): void {
    const end = (error: unknown): void => {
      this.#active.delete(productId);
      for (const resolve of this.#waiting) resolve();
      onEnd(signal.aborted ? null : error);
    };
    this.#active.set(
      productId,
      this.#push(productId, signal).then(() => end(null), end),
    );
  }

  async #push(productId: Reach, signal: AbortSignal): Promise<void> {
    const { reader, limiter, clock, writer, limits, fetcher } = this.#parts;
    // The limiter comes first: operations that are marked as in flight must be sent at once.
    const admission = await limiter.admit('push', signal);
    if (!admission.admitted) return;
    let isSent = false;
    try {
      const uncertain = reader.operations.uncertainOf(productId, limits().operations);
      if (uncertain.length > 0) {
        isSent = true;
        await this.#askAbout(productId, uncertain);
        return;
      }
      const planned = await persist(clock, signal, () =>
        writer.write('planPush', { productId, limits: limits() }),
      );
      if (!planned.ok) return;
      const { push, keysToRead } = planned.value;
      if (productId !== null) for (const licenseKey of keysToRead) fetcher.refresh(productId, licenseKey);
      if (push === null) return;
      using _guards = await this.#holdKeys(push, signal);
      const body = await this.#storedBody(productId, push, signal);
      if (body === null) return;
      isSent = true;
      await this.#send(productId, { ...push, body });
    } finally {
      if (!isSent) limiter.giveBack();
    }
  }

  /** Asks what became of operations of an earlier identity. */
  async #askAbout(productId: Reach, operations: readonly Operation[]): Promise<void> {
    const { reader, writer, syncUpstream, clock, limiter, lifetime } = this.#parts;
    const agent = agentIdOf(reader);
    if (agent === null) {
      limiter.giveBack();
      await persist(clock, lifetime, () => writer.write('makeAgentId', {}));
      return;
    }
    const sentAt = clock.monotonic();
    const ids = operations.map(({ id }) => id);
    const outcome = await syncUpstream.known(productId, agent, ids, lifetime);
    limiter.observe(outcome, { owner: productId, subject: `known ${productId}`, sentAt });
    if (outcome.outcome !== 'applied') return this.#failed(productId, outcome);
    const results = outcome.value.filter(({ id }) => ids.includes(id));
    if (results.length === 0) return this.#failed(productId, saysNothing);
    await persist(clock, lifetime, () => writer.write('recordKnown', { results }));
  }

  /** Reads of the same keys end before the push, and new ones wait: a count is never read while a push may change it. */
  async #holdKeys({ operations }: PlannedPush, signal: AbortSignal): Promise<DisposableStack> {
    const guards = new DisposableStack();
    const queues = new Map<string, Set<QueueName>>();
    for (const { subject, kind } of operations) {
      if (isLicenseKind(kind)) queues.set(subject, (queues.get(subject) ?? new Set()).add(queueOf[kind]));
    }
    try {
      const held = await Promise.all(
        [...queues].map(([subject, names]) => this.#parts.mutex.enter(subject, [...names], signal)),
      );
      for (const guard of held) guards.use<MutexGuard>(guard);
      return guards;
    } catch (error) {
      guards.dispose();
      throw error;
    }
  }

  /** Null: meanwhile another identity has begun, or a person has chosen the plain protocol. */
  async #storedBody(productId: Reach, planned: PlannedPush, signal: AbortSignal): Promise<string | null> {
    const { writer, syncUpstream, clock } = this.#parts;
    if (planned.body !== null) return planned.body;
    const body = syncUpstream.writePush(planned.agent, planned.seq, planned.operations);
    const stored = await persist(clock, signal, () =>
      writer.write('storePush', { productId, seq: planned.seq, body }),
    );
    return stored.ok ? body : null;
  }

  async #send(productId: Reach, push: PlannedPush & { body: string }): Promise<void> {
    const { syncUpstream, clock, limiter, lifetime } = this.#parts;
    const sentAt = clock.monotonic();
    const outcome = await syncUpstream.push(productId, { seq: push.seq, body: push.body }, lifetime);
    limiter.observe(outcome, { owner: productId, subject: `push ${productId}`, sentAt });
    if (outcome.outcome !== 'applied') return this.#failed(productId, outcome);
    const answer = await this.#withQuotes(push, outcome.value);
    if ('outcome' in answer) this.#failed(productId, answer);
    else await this.#record(productId, push, answer);
  }

  /** Asks for the quotes that were too long for the answer. Without one of them, the push counts as not answered. */
  async #withQuotes({ operations }: PlannedPush, answer: PushAnswer): Promise<PushAnswer | Failed> {
    const { syncUpstream, limiter, clock, lifetime } = this.#parts;
    if (answer.kind !== 'results') return answer;
    const results = { ...answer.results };
    for (const { id, subject } of operations) {
      const result = results[id];
      if (result?.outcome !== 'applied' || result.quote !== null) continue;
      const sentAt = clock.monotonic();
      const outcome = await syncUpstream.quoteOf(subject, lifetime);
      limiter.observe(outcome, { owner: null, subject: 'coupons', sentAt });
      if (outcome.outcome === 'applied') results[id] = { ...result, quote: outcome.value };
      // A redemption that was voided since has no quote.
      else if (!isMissing(outcome)) return outcome;
    }
    return { ...answer, results };
  }

  async #record(productId: Reach, { seq, agent }: PlannedPush, answer: PushAnswer): Promise<void> {
    const { writer, clock, log, meter, lifetime, settings } = this.#parts;
    if (answer.kind === 'results') {
      this.#attempts.delete(productId);
    } else {
      meter.pushed('refused', { delivered: 0, rejected: 0 });
      // A refusal of a number is followed by a push that is taken. If not, the upstream is ill.
      this.#postpone(productId);
    }
    if (answer.kind === 'reused') {
      await persist(clock, lifetime, () => writer.write('renewIdentity', { agent }));
      const hint = 'use a state directory on one machine only';
      log.error({ product: productId, push: seq, hint }, 'another process has sent pushes of this agent');
      return;
    }
    const { policy } = settings();
    if (answer.kind === 'out_of_sequence') {
      const { last, epoch } = answer;
      const resumed = await persist(clock, lifetime, () =>
        writer.write('resumePushes', { productId, agent, last, epoch }),
      );
      if (resumed.ok) logResumed(log, productId, resumed.value);
      return;
    }
    const { results, epoch } = answer;
    const recorded = await persist(clock, lifetime, () =>
      writer.write('recordPush', { productId, seq, epoch, results, policy }),
    );
    if (!recorded.ok) return;
    meter.pushed('answered', recorded.value);
    log.debug({ product: productId, push: seq, ...recorded.value }, 'a push was answered');
  }

  /** Whatever happened to it: the same push is sent again. */
  #failed(productId: Reach, outcome: Failed): void {
    const { log, meter } = this.#parts;
    meter.pushed('failed', { delivered: 0, rejected: 0 });
    const isRefused = outcome.outcome === 'not_applied' && outcome.reason === 'unauthorized';
    const failures = this.#postpone(productId, { retryAfterMs: outcome.retryAfterMs, isRefused });
    log.warn({ product: productId, error: outcome.detail, failures }, 'a push was not answered');
  }

  /** Lets the reach wait longer after each failure. Returns how many failed in a row. */
  #postpone(
    productId: Reach,
    { retryAfterMs, isRefused }: { retryAfterMs: number | null; isRefused: boolean } = {
      retryAfterMs: null,
      isRefused: false,
    },
  ): number {
    const { clock, settings, fraction } = this.#parts;
    const failures = (this.#attempts.get(productId)?.failures ?? 0) + 1;
    const { backoff }: { backoff: BackoffPolicy } = settings().policy;
    const waitMs = Math.max(backoffMs(backoff, failures, fraction()), retryAfterMs ?? 0);
    this.#attempts.set(productId, { failures, retryAt: clock.monotonic() + waitMs, isRefused });
    return failures;
  }
}

const saysNothing = notApplied('rejected', 'the answer says nothing about the changes that were asked about');

/** The upstream was restored: what is sent again, and what is lost. */
export function logResumed(log: Log, product: Reach, { lost, ...resumed }: ResumedPushes): void {
  log.warn({ product, ...resumed }, 'pushes continue from another number');
  if (lost === null) return;
  const { operations } = lost;
  const [from, to] = [lost.firstAt, lost.lastAt].map(formatDatetime);
  const hint = 'compare the counts of the license keys that were used on these days';
  log.error(
    { product, operations, from, to, hint },
    'the upstream has lost changes that are too old to be sent again',
  );
}
