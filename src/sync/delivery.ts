import type { License } from '../domain/license.ts';
import type { Outcome } from '../domain/outbox/outcome.ts';
import { isLicenseKind, type Operation, type QueueName } from '../domain/outbox/operation.ts';
import type { PlannedStep, SendStep } from '../service/outbox/plan-step.ts';
import type { SyncPolicy } from '../service/outbox/queue.ts';
import type { QueueKey } from '../service/outbox/tables.ts';
import { isLatchkey } from '../service/outbox/upstream/identity.ts';
import { isResuming } from '../service/outbox/upstream/lost-operations.ts';
import type { Clock, Deliveries, Keyed, Log, Upstream } from '../service/ports.ts';
import type { UpstreamMeter } from '../service/status.ts';
import type { Reader } from '../service/tables.ts';
import type { CommandOf, Writer } from '../service/writer.ts';
import type { CouponSync } from './coupon-sync.ts';
import { type KeyedMutex, type MutexGuard, persist, Wake } from './waiting.ts';
import { logOtherWriter, type LicenseFetcher } from './license-fetcher.ts';
import type { UpstreamLimiter } from './upstream-limiter.ts';

/*
 * The delivery loop delivers the outbox: it takes queues whose first operation is due, and makes one step for each.
 *
 *   working   a queue is due and there is room: a step is started
 *   full      `sync.concurrency` requests are under way: the end of a step wakes the loop
 *   idle      nothing is due: the loop sleeps until the next queue is due, or a new operation wakes it
 *   stopped   the limiter admits nothing (pause, breaker, Retry-After): the limiter wakes the loop
 *   resuming  the upstream was restored: what was delivered returns to the outbox first
 *   ending    the signal has aborted: nothing is started, and requests under way are awaited
 *
 * A step: plan, then send and record the response; or read the key, and plan again. To a Latchkey each change is sent under
 * the id of its operation, so that a lost response needs no read.
 */

/** The longest sleep, in ms. It bounds the delay after the machine was suspended. */
const maxSleepMs = 30_000;
/** How many due queues are read from the store at once, for each request that may be under way. */
const readAhead = 4;
/** How many operations return to the outbox in one commit: callers wait for that long. */
const resumedAtOnce = 100;

type DeliveryLoopParts = {
  reader: Reader;
  writer: Writer;
  upstream: Upstream;
  clock: Clock;
  log: Log;
  meter: UpstreamMeter;
  mutex: KeyedMutex;
  limiter: UpstreamLimiter;
  fetcher: LicenseFetcher;
  coupons: CouponSync;
  settings: () => { concurrency: number; policy: SyncPolicy; productIds: readonly string[] };
  /** Ends requests under way. */
  lifetime: AbortSignal;
};

/** `signal` ends the loop; `fail` ends it because the store failed. */
type Run = { signal: AbortSignal; fail: (error: unknown) => void };

export class DeliveryLoop implements Deliveries {
  readonly #parts: DeliveryLoopParts;
  readonly #active = new Map<string, Promise<void>>();
  /** How many active steps have their response, and are recording it: they have no request under way. */
  #recording = 0;
  /** Queues that were due when the outbox was last read, and were not started; longest due first. */
  #due: QueueKey[] = [];
  readonly #wake: Wake;
  /** Callers that wait for their operation: each checks again when it is called. */
  readonly #waiting = new Set<() => void>();
  /** What has returned to the outbox since the upstream was restored, and what was too old for that. */
  #resumed = 0;
  #tooOld = 0;

  constructor(parts: DeliveryLoopParts) {
    this.#parts = parts;
    this.#wake = new Wake(parts.clock);
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
        if (isResuming(this.#parts.reader)) {
          await this.#resume(run);
          continue;
        }
        await this.#wake.wait(Math.min(this.#startDue(run), maxSleepMs), run.signal);
      }
      await Promise.all(this.#active.values());
    };
    await Promise.race([loop(), failed.promise]);
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

  /** Returns some of what was delivered to the outbox, because the upstream was restored. */
  async #resume(run: Run): Promise<void> {
    const { writer, clock, log } = this.#parts;
    this.#due = [];
    await Promise.all(this.#active.values());
    const batch = await persist(clock, run.signal, () =>
      writer.write('resumeDelivered', { limit: resumedAtOnce }),
    );
    if (!batch.ok) return;
    const { resumed, tooOld, isOver } = batch.value;
    this.#resumed += resumed;
    this.#tooOld += tooOld;
    if (!isOver) return;
    log.warn({ operations: this.#resumed }, 'the upstream was restored: what was delivered is sent again');
    if (this.#tooOld > 0) {
      const hint = 'compare the counts of the license keys that were used then';
      log.error({ operations: this.#tooOld, hint }, 'delivered changes are too old to be sent again');
    }
    this.#resumed = 0;
    this.#tooOld = 0;
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
    // A process that ends may have closed its store.
    if (run.signal.aborted) return;
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
      .finally(() => {
        this.#active.delete(name);
        this.#startKnown(run);
        if (this.#due.length === 0) this.#wake.up();
        this.#notifyWaiting();
      })
      .catch((error: unknown) => {
        if (!run.signal.aborted) run.fail(error);
      });
    this.#active.set(name, step);
  }

  /** One step of a queue: a send, or a read and then perhaps a send. */
  async #step(queue: QueueKey, run: Run): Promise<void> {
    const { reader, mutex, limiter, fetcher, coupons } = this.#parts;
    {
      using guard = await mutex.enter(queue.subject, this.#queuesOf(queue.queue), run.signal);
      const next = await this.#planAndSend({ queue, justRead: false, guard }, run);
      if (next !== 'read') return;
    }
    if (queue.queue === 'coupon' || queue.queue === 'order') {
      const head = reader.operations.head(queue.subject, queue.queue);
      if (head !== null) await coupons.reconcile(head);
      return;
    }
    using guard = await mutex.enter(queue.subject, ['counter', 'state'], run.signal);
    const admission = await limiter.admit('delivery', run.signal);
    if (!admission.admitted || queue.productId === null) return;
    const outcome = await fetcher.fetchNow(queue.productId, queue.subject);
    if (outcome.outcome === 'applied' && !outcome.isCached) {
      await this.#planAndSend({ queue, justRead: true, guard }, run);
    }
  }

  /** To a Latchkey one request of each key is under way at a time, so that its answers arrive in the order of their revisions. */
  #queuesOf(queue: QueueName): readonly QueueName[] {
    const isOfKey = queue === 'counter' || queue === 'state';
    return isOfKey && isLatchkey(this.#parts.reader) ? ['counter', 'state'] : [queue];
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
      await this.#send(planned, guard, run);
      return 'done';
    }
    limiter.giveBack();
    return planned.step === 'read' ? 'read' : 'done';
  }

  /** Null if the limiter admits nothing. If the step sends nothing, the caller gives the admission back. */
  async #plan(command: CommandOf<'planStep'>, run: Run): Promise<PlannedStep | null> {
    const { writer, limiter } = this.#parts;
    // The limiter comes first: an operation that is marked as in flight must be sent at once.
    const admission = await limiter.admit('delivery', run.signal);
    if (!admission.admitted) return null;
    try {
      const planned = await writer.write('planStep', command);
      return planned.ok ? planned.value : { step: 'none' };
    } catch (error) {
      limiter.giveBack();
      throw error;
    }
  }

  async #send({ operation, keyed }: SendStep, guard: MutexGuard, run: Run): Promise<void> {
    const { writer, clock, log, limiter, coupons, settings, lifetime } = this.#parts;
    if (!isLicenseKind(operation.kind)) {
      await coupons.send(operation);
      return;
    }
    const sentAt = clock.monotonic();
    const outcome = await this.#request(operation, keyed);
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

  #request(operation: Operation, keyed: Keyed | undefined): Promise<Outcome<License>> {
    const { upstream, lifetime } = this.#parts;
    const { id, productId, subject, kind, amount, requestId } = operation;
    if (productId === null || !isLicenseKind(kind)) throw new Error(`operation ${id} has no product`);
    const change = { productId, licenseKey: subject, kind, amount, requestId };
    return upstream.change({ ...change, ...(keyed !== undefined && { keyed }) }, lifetime);
  }
}

function nameOf({ queue, subject }: Pick<QueueKey, 'subject' | 'queue'>): string {
  return `${queue} ${subject}`;
}
