import type { License } from '../domain/license.ts';
import type { Step } from '../domain/outbox/delivery.ts';
import type { Outcome } from '../domain/outbox/outcome.ts';
import { isLicenseKind, type Operation } from '../domain/outbox/operation.ts';
import type { SyncPolicy } from '../service/outbox/queue.ts';
import type { QueueKey } from '../service/outbox/tables.ts';
import { protocolOf } from '../service/outbox/protocol.ts';
import type { Clock, Deliveries, Log, PushLimits, SyncUpstream, Upstream } from '../service/ports.ts';
import type { UpstreamMeter } from '../service/status.ts';
import type { Reader } from '../service/tables.ts';
import type { CommandOf, Writer } from '../service/writer.ts';
import { BatchPush } from './batch-push.ts';
import type { CouponSync } from './coupon-sync.ts';
import { type KeyedMutex, type MutexGuard, persist, Wake } from './waiting.ts';
import { logOtherWriter, type LicenseFetcher } from './license-fetcher.ts';
import type { UpstreamLimiter } from './upstream-limiter.ts';

/*
 * The push loop delivers the outbox: it takes queues whose first operation is due, and makes one step for each.
 *
 *   working   a queue is due and there is room: a step is started
 *   full      `sync.concurrency` requests are under way: the end of a step wakes the loop
 *   idle      nothing is due: the loop sleeps until the next queue is due, or a new operation wakes it
 *   stopped   the limiter admits nothing (pause, breaker, Retry-After): the limiter wakes the loop
 *   ending    the signal has aborted: nothing is started, and requests under way are awaited
 *
 * A step: plan, then send and record the response; or read the key, and plan again.
 */

/** The longest sleep, in ms. It bounds the delay after the machine was suspended. */
const maxSleepMs = 30_000;
/** How many due queues are read from the store at once, for each request that may be under way. */
const readAhead = 4;

type PushParts = {
  reader: Reader;
  writer: Writer;
  upstream: Upstream;
  syncUpstream: SyncUpstream;
  clock: Clock;
  log: Log;
  meter: UpstreamMeter;
  mutex: KeyedMutex;
  limiter: UpstreamLimiter;
  fetcher: LicenseFetcher;
  coupons: CouponSync;
  settings: () => { concurrency: number; policy: SyncPolicy; productIds: readonly string[] };
  limits: () => PushLimits;
  /** Called after each push to `/sync/v1`. */
  onPushed: () => void;
  fraction: () => number;
  /** Ends requests under way. */
  lifetime: AbortSignal;
};

/** `signal` ends the loop; `fail` ends it because the store failed. */
type Run = { signal: AbortSignal; fail: (error: unknown) => void };

export class Push implements Deliveries {
  readonly #parts: PushParts;
  readonly #active = new Map<string, Promise<void>>();
  /** How many active steps have their response, and are recording it: they have no request under way. */
  #recording = 0;
  /** Queues that were due when the outbox was last read, and were not started; longest due first. */
  #due: QueueKey[] = [];
  readonly #wake: Wake;
  readonly #batches: BatchPush;
  /** Callers that wait for their operation: each checks again when it is called. */
  readonly #waiting = new Set<() => void>();

  constructor(parts: PushParts) {
    this.#parts = parts;
    this.#wake = new Wake(parts.clock);
    this.#batches = new BatchPush(parts);
  }

  /** Runs until the signal aborts, then until requests under way are answered. Rejects when the store failed. */
  async run(signal: AbortSignal): Promise<void> {
    const failed = Promise.withResolvers<never>();
    // After a failure of the store, steps would fail again at once, without end. None of them is awaited.
    const ending = new AbortController();
    const run: Run = {
      signal: AbortSignal.any([signal, ending.signal]),
      fail(error) {
        ending.abort();
        failed.reject(error);
      },
    };
    const loop = async (): Promise<void> => {
      while (!run.signal.aborted) {
        const waitMs = isPushing(this.#parts.reader) ? this.#startBatches(run) : this.#startDue(run);
        await this.#wake.wait(Math.min(waitMs, maxSleepMs), run.signal);
      }
      await Promise.all([...this.#active.values(), this.#batches.settled()]);
    };
    await Promise.race([loop(), failed.promise]);
  }

  /** Resolves when a push of the product has ended; at once if none is unanswered. */
  async pushed(productId: string, signal: AbortSignal): Promise<void> {
    await this.#batches.pushed(productId, signal);
  }

  /** Ends the waits of pushes after an outage. */
  endOutage(): void {
    this.#batches.endOutage();
    this.#wake.up();
  }

  /** Ends the waits of pushes after failed attempts. */
  endBackoff(): void {
    this.#batches.endBackoff();
    this.#wake.up();
  }

  wake(queue?: Pick<QueueKey, 'subject' | 'queue'>): void {
    if (queue === undefined) {
      this.#wake.up();
      this.#notifyWaiting();
    } else if (this.#mayStart(queue)) {
      this.#wake.up();
    }
  }

  async waitFor(
    operationId: string,
    { waitMs, untilFailure }: { waitMs: number; untilFailure: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, lifetime } = this.#parts;
    const deadline = clock.monotonic() + waitMs;
    const leaving = AbortSignal.any([signal, lifetime]);
    const wake = new Wake(clock);
    const check = (): void => wake.up();
    this.#waiting.add(check);
    try {
      while (!this.#isOver(operationId, untilFailure) && clock.monotonic() < deadline && !leaving.aborted) {
        await wake.wait(deadline - clock.monotonic(), leaving);
      }
    } finally {
      this.#waiting.delete(check);
    }
  }

  #notifyWaiting(): void {
    for (const check of this.#waiting) check();
  }

  /** Whether a caller need not wait for an operation any longer. */
  #isOver(operationId: string, untilFailure: boolean): boolean {
    const { reader, limiter } = this.#parts;
    const operation = reader.operations.get(operationId);
    if (operation === null) return true;
    const { progress } = operation;
    const isFailing = untilFailure && isPushing(reader) && this.#batches.isFailing(operation.productId);
    if (isFailing) return true;
    if (progress.state === 'in_flight') return false;
    if (progress.state !== 'pending') return progress.state !== 'uncertain' || untilFailure || progress.held;
    const isStuck = !limiter.isAccepted(operation.productId);
    return untilFailure && (operation.failures > 0 || isStuck || !limiter.admission().admitted);
  }

  /**
   * Whether a new operation of a queue may be sent now. If not, the loop need not wake up: it reads the outbox anyway
   * at the end of each step, after a pause, and when the upstream is back. This saves a read for each new operation.
   */
  #mayStart(queue: Pick<QueueKey, 'subject' | 'queue'>): boolean {
    const admission = this.#parts.limiter.admission();
    const isStopped = !admission.admitted && admission.againAt === null;
    return !isStopped && this.#hasRoom() && !this.#active.has(nameOf(queue));
  }

  #startBatches(run: Run): number {
    return this.#batches.startDue(run.signal, (error) => {
      if (error !== null) run.fail(error);
      this.#parts.onPushed();
      this.#wake.up();
      this.#notifyWaiting();
    });
  }

  /** Starts steps for due queues while there is room. Returns for how long nothing can be started, in ms. */
  #startDue(run: Run): number {
    const { reader, clock, limiter, settings } = this.#parts;
    const now = clock.monotonic();
    while (!run.signal.aborted) {
      this.#startKnown(run);
      const admission = limiter.admission();
      if (!admission.admitted) return admission.againAt === null ? Infinity : admission.againAt - now;
      if (!this.#hasRoom()) return Infinity;
      const max = settings().concurrency * readAhead;
      const due = reader.operations.due(now, max, (owner) => limiter.isAccepted(owner));
      this.#due = due.filter((queue) => !this.#active.has(nameOf(queue)));
      if (this.#due.length === 0) return (reader.operations.nextDueAt(now) ?? Infinity) - now;
    }
    return Infinity;
  }

  /** Starts known due queues while there is room. The outbox is read again only when all of them were started. */
  #startKnown(run: Run): void {
    const { limiter } = this.#parts;
    // When the limiter admits requests again, other queues may be due.
    if (!limiter.admission().admitted) this.#due = [];
    while (this.#due.length > 0 && this.#hasRoom() && !run.signal.aborted) {
      const queue = this.#due.shift();
      if (queue !== undefined && limiter.isAccepted(queue.productId)) this.#start(queue, run);
    }
  }

  /** Besides the requests under way, as many steps again may be recording their responses. */
  #hasRoom(): boolean {
    const { concurrency } = this.#parts.settings();
    return this.#active.size - this.#recording < concurrency && this.#active.size < 2 * concurrency;
  }

  #start(queue: QueueKey, run: Run): void {
    const name = nameOf(queue);
    const step = this.#step(queue, run)
      .catch((error: unknown) => {
        if (!run.signal.aborted) run.fail(error);
      })
      .finally(() => {
        this.#active.delete(name);
        this.#startKnown(run);
        if (this.#due.length === 0) this.#wake.up();
        this.#notifyWaiting();
      });
    this.#active.set(name, step);
  }

  /** One step of a queue: a send, or a read and then perhaps a send. */
  async #step(queue: QueueKey, run: Run): Promise<void> {
    const { reader, mutex, limiter, fetcher, coupons } = this.#parts;
    {
      using guard = await mutex.enter(queue.subject, [queue.queue], run.signal);
      const next = await this.#planAndSend({ queue, justRead: false, guard }, run);
      if (next !== 'read') return;
    }
    if (queue.queue === 'coupon') {
      const head = reader.operations.head(queue.subject, queue.queue);
      if (head !== null) await coupons.reconcile(head);
      return;
    }
    using guard = await mutex.enter(queue.subject, ['counter', 'state'], run.signal);
    const admission = await limiter.admit('push', run.signal);
    if (!admission.admitted || queue.productId === null) return;
    const outcome = await fetcher.fetchNow(queue.productId, queue.subject);
    if (outcome.outcome === 'applied' && !outcome.isCached) {
      await this.#planAndSend({ queue, justRead: true, guard }, run);
    }
  }

  /** Plans the next step and sends if the plan says so. A read is left to the caller, which holds one queue only. */
  async #planAndSend(
    { queue, justRead, guard }: { queue: QueueKey; justRead: boolean; guard: MutexGuard },
    run: Run,
  ): Promise<'read' | 'done'> {
    const { clock, limiter } = this.#parts;
    const command = { subject: queue.subject, queue: queue.queue, justRead };
    // A full disk may delay the plan for long, so each attempt asks the limiter again.
    const planned = await persist(clock, run.signal, () => this.#plan(command, run));
    if (planned === null) return 'done';
    if (planned.step === 'send') {
      await this.#send(planned.operation, guard, run);
      return 'done';
    }
    limiter.giveBack();
    return planned.step === 'read' ? 'read' : 'done';
  }

  /** Null if the limiter admits nothing. If the step sends nothing, the caller gives the admission back. */
  async #plan(command: CommandOf<'planStep'>, run: Run): Promise<Step | null> {
    const { writer, limiter } = this.#parts;
    // The limiter comes first: an operation that is marked as in flight must be sent at once.
    const admission = await limiter.admit('push', run.signal);
    if (!admission.admitted) return null;
    try {
      const planned = await writer.write('planStep', command);
      return planned.ok ? planned.value : { step: 'none' };
    } catch (error) {
      limiter.giveBack();
      throw error;
    }
  }

  async #send(operation: Operation, guard: MutexGuard, run: Run): Promise<void> {
    const { writer, clock, log, limiter, coupons, settings, lifetime } = this.#parts;
    if (operation.kind === 'create_coupon') {
      await coupons.send(operation);
      return;
    }
    const sentAt = clock.monotonic();
    const outcome = await this.#request(operation);
    limiter.observe(outcome, { owner: operation.productId, subject: operation.subject, sentAt });
    const { policy } = settings();
    this.#recording += 1;
    this.#startKnown(run);
    const recorded = await persist(clock, lifetime, () => {
      // Read `overlapped` for each attempt: while the disk was full, the other queue may have sent something.
      const { overlapped } = guard;
      return writer.write('recordResponse', { operationId: operation.id, outcome, overlapped, policy });
    }).finally(() => {
      this.#recording -= 1;
    });
    if (!recorded.ok) return;
    const { unexpected, state, lastError: error } = recorded.value;
    const { id, subject: licenseKey, requestId } = operation;
    if (unexpected !== null)
      logOtherWriter(this.#parts, { operation: id, licenseKey, ...unexpected }, policy);
    if (state !== 'delivered' && state !== 'inferred') {
      log.warn({ operation: id, licenseKey, state, error, requestId }, 'an operation was not delivered');
    }
  }

  #request({ id, productId, subject, kind, requestId }: Operation): Promise<Outcome<License>> {
    const { upstream, lifetime } = this.#parts;
    if (productId === null || !isLicenseKind(kind)) throw new Error(`operation ${id} has no product`);
    return upstream.change({ productId, licenseKey: subject, kind, requestId }, lifetime);
  }
}

function isPushing(reader: Reader): boolean {
  return protocolOf(reader) === 'latchkey';
}

function nameOf({ queue, subject }: Pick<QueueKey, 'subject' | 'queue'>): string {
  return `${queue} ${subject}`;
}
