import type { Deliveries, Clock, Log, Upstream } from '../service/ports.ts';
import type { SyncPolicy } from '../service/outbox/queue.ts';
import type { QueueKey } from '../service/outbox/tables.ts';
import { Wake, persist } from './waiting.ts';
import type { License } from '../domain/license.ts';
import type { Step } from '../domain/outbox/delivery.ts';
import type { LicenseOperationKind, Operation } from '../domain/outbox/operation.ts';
import type { Outcome } from '../domain/outbox/outcome.ts';
import type { CommandOf, Writer } from '../service/writer.ts';
import type { UpstreamMeter } from '../service/status.ts';
import type { Reader } from '../service/tables.ts';
import type { CouponSync } from './coupon-sync.ts';
import type { KeyedMutex, MutexGuard } from './keyed-mutex.ts';
import { logOtherWriter, type LicenseFetcher } from './license-fetcher.ts';
import type { UpstreamLimiter } from './upstream-limiter.ts';

/** The longest sleep between two looks at the outbox, in ms: it bounds the delay after the machine slept. */
const longestSleepMs = 30_000;
/** How many due queues are read from the store at once, for each that is worked on at once. */
const readAhead = 4;

type PushParts = Omit<StepParts, 'onAnswered' | 'onRecorded' | 'settings'> & {
  settings: () => { concurrency: number; policy: SyncPolicy };
};

/** What the steps of a run need, what ends it, and who is told that the store failed. */
type Run = { steps: StepParts; signal: AbortSignal; fail: (error: unknown) => void };

/** Delivers the outbox: takes queues whose head is due, up to `sync.concurrency` at once, each one step at a time. */
export class Push implements Deliveries {
  readonly #parts: PushParts;
  readonly #active = new Map<string, Promise<void>>();
  /** How many of those have their answer, which is being recorded: nothing of them is on its way. */
  #recording = 0;
  /** Queues that were due when the outbox was last read, and have not been started; longest due first. */
  #due: QueueKey[] = [];
  readonly #wake: Wake;
  readonly #waits: DeliveryWaits;

  constructor(parts: PushParts) {
    this.#parts = parts;
    this.#wake = new Wake(parts.clock);
    this.#waits = new DeliveryWaits(parts);
  }

  wake(queue?: Pick<QueueKey, 'subject' | 'queue'>): void {
    if (queue === undefined) {
      this.#wake.up();
      this.#waits.look();
    } else if (this.#mayStart(queue)) {
      this.#wake.up();
    }
  }

  /**
   * Whether something new in a queue may be sent now. Else it is looked for anyway: at the end of each step, after a
   * pause and when the upstream is back. A change that is recorded meanwhile must not cost a look of its own.
   */
  #mayStart(queue: Pick<QueueKey, 'subject' | 'queue'>): boolean {
    const admission = this.#parts.limiter.admission();
    const isStopped = !admission.admitted && admission.againAt === null;
    return !isStopped && this.#hasRoom() && !this.#active.has(nameOf(queue));
  }

  /** Runs until the signal, then until what is in flight has been answered. Rejects when the store failed. */
  async run(signal: AbortSignal): Promise<void> {
    const failed = Promise.withResolvers<never>();
    // What is still due would be tried again at once, and without end: nothing of it is waited for.
    const ending = new AbortController();
    const steps = {
      ...this.#parts,
      onAnswered: () => {
        this.#recording += 1;
        this.#startKnown(run);
      },
      onRecorded: () => {
        this.#recording -= 1;
      },
    };
    const run: Run = {
      steps,
      signal: AbortSignal.any([signal, ending.signal]),
      fail(error) {
        ending.abort();
        failed.reject(error);
      },
    };
    const ends = async (): Promise<void> => {
      while (!run.signal.aborted) {
        const waitMs = this.#startDue(run);
        await this.#wake.wait(Math.min(waitMs, longestSleepMs), run.signal);
      }
      await Promise.all(this.#active.values());
    };
    await Promise.race([ends(), failed.promise]);
  }

  waitFor(...awaited: Parameters<Deliveries['waitFor']>): Promise<void> {
    return this.#waits.waitFor(...awaited);
  }

  /** Starts due queues as long as there is room; returns how long nothing more is to be started, in ms. */
  #startDue(run: Run): number {
    const { reader, clock, limiter, settings } = this.#parts;
    const now = clock.elapsed();
    while (!run.signal.aborted) {
      this.#startKnown(run);
      const admission = limiter.admission();
      if (!admission.admitted) return admission.againAt === null ? Infinity : admission.againAt - now;
      if (!this.#hasRoom()) return Infinity;
      const due = reader.operations.due(now, settings().concurrency * readAhead, (owner) =>
        limiter.isAccepted(owner),
      );
      this.#due = due.filter((queue) => !this.#active.has(nameOf(queue)));
      if (this.#due.length === 0) return (reader.operations.nextDueAt(now) ?? Infinity) - now;
    }
    return Infinity;
  }

  /**
   * Starts queues that are known to be due as long as there is room, those first that have been for the longest. The
   * outbox is read again only when all have been started: what has become due meanwhile stands behind them.
   */
  #startKnown(run: Run): void {
    const { limiter } = this.#parts;
    // By the time that something may go up again, other queues may be due.
    if (!limiter.admission().admitted) this.#due = [];
    while (this.#due.length > 0 && this.#hasRoom() && !run.signal.aborted) {
      const queue = this.#due.shift();
      if (queue !== undefined && limiter.isAccepted(queue.productKey)) this.#start(queue, run);
    }
  }

  /** One request is under way in each queue, and as many again may be waiting for their answer to be recorded. */
  #hasRoom(): boolean {
    const { concurrency } = this.#parts.settings();
    return this.#active.size - this.#recording < concurrency && this.#active.size < 2 * concurrency;
  }

  #start(queue: QueueKey, run: Run): void {
    const name = nameOf(queue);
    const step = takeStep(run.steps, queue, run.signal)
      .catch((error: unknown) => {
        if (!run.signal.aborted) run.fail(error);
      })
      .finally(() => {
        this.#active.delete(name);
        this.#startKnown(run);
        if (this.#due.length === 0) this.#wake.up();
        this.#waits.look();
      });
    this.#active.set(name, step);
  }
}

function nameOf({ queue, subject }: Pick<QueueKey, 'subject' | 'queue'>): string {
  return `${queue} ${subject}`;
}

type StepParts = {
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
  settings: () => { policy: SyncPolicy };
  /** Called when an operation has its answer, which is being recorded from now on: nothing is on its way. */
  onAnswered: () => void;
  /** Called when that is recorded, or cannot be. */
  onRecorded: () => void;
  /** Ends requests under way. */
  lifetime: AbortSignal;
};

/** Takes one step of a queue: a send, or a read and what follows from it at once. */
async function takeStep(parts: StepParts, queue: QueueKey, signal: AbortSignal): Promise<void> {
  const { reader, mutex, limiter, fetcher, coupons } = parts;
  {
    using guard = await mutex.enter(queue.subject, [queue.queue], signal);
    const needs = await follow(parts, { queue, justRead: false, guard }, signal);
    if (needs !== 'read') return;
  }
  if (queue.queue === 'coupon') {
    const head = reader.operations.head(queue.subject, queue.queue);
    if (head !== null) await coupons.reconcile(head);
    return;
  }
  using guard = await mutex.enter(queue.subject, ['counter', 'state'], signal);
  const admission = await limiter.admit('push', signal);
  if (!admission.admitted || queue.productKey === null) return;
  const outcome = await fetcher.fetchNow(queue.productKey, queue.subject);
  if (outcome.outcome === 'applied' && !outcome.isCached)
    await follow(parts, { queue, justRead: true, guard }, signal);
}

/** Plans the next step of a queue and sends what is to be sent; a read is left to the caller, who holds one queue only. */
async function follow(
  parts: StepParts,
  { queue, justRead, guard }: { queue: QueueKey; justRead: boolean; guard: MutexGuard },
  signal: AbortSignal,
): Promise<'read' | 'nothing'> {
  const command = { subject: queue.subject, queue: queue.queue, justRead };
  // What held up a plan on a full disk may have taken long: it is admitted anew each time.
  const planned = await persist(parts.clock, signal, () => planAdmitted(parts, command, signal));
  if (planned === null) return 'nothing';
  if (planned.step === 'send') {
    await send(parts, planned.operation, guard);
    return 'nothing';
  }
  parts.limiter.giveBack();
  return planned.step === 'read' ? 'read' : 'nothing';
}

/** Null when nothing may go up now; a step that is no send has its admission to give back. */
async function planAdmitted(
  { writer, limiter }: StepParts,
  command: CommandOf<'planStep'>,
  signal: AbortSignal,
): Promise<Step | null> {
  // Wait for the rate limit first: an operation that is marked in flight must be sent at once.
  const admission = await limiter.admit('push', signal);
  if (!admission.admitted) return null;
  try {
    const planned = await writer.write('planStep', command);
    return planned.ok ? planned.value : { step: 'none' };
  } catch (error) {
    limiter.giveBack();
    throw error;
  }
}

async function send(parts: StepParts, operation: Operation, guard: MutexGuard): Promise<void> {
  const { writer, clock, log, limiter, coupons, settings, lifetime } = parts;
  if (operation.kind === 'create_coupon') {
    await coupons.send(operation);
    return;
  }
  const sentAt = clock.elapsed();
  const outcome = await request(parts, operation);
  limiter.observe(outcome, { owner: operation.productKey, subject: operation.subject, sentAt });
  const { policy } = settings();
  parts.onAnswered();
  const recorded = await persist(clock, lifetime, () => {
    // While a full disk kept the answer back, the other queue may have been sent something, and answered.
    const { overlapped } = guard;
    return writer.write('recordAnswer', { operationId: operation.id, outcome, overlapped, policy });
  }).finally(parts.onRecorded);
  if (!recorded.ok) return;
  const { unexpected, state, lastError: error } = recorded.value;
  const { id, subject: licenseKey, requestId } = operation;
  if (unexpected !== null) logOtherWriter(parts, { operation: id, licenseKey, ...unexpected }, policy);
  if (state !== 'delivered' && state !== 'inferred') {
    const about = { operation: id, licenseKey, state, error, requestId };
    log.warn(about, 'an operation was not delivered');
  }
}

function request({ upstream, lifetime }: StepParts, operation: Operation): Promise<Outcome<License>> {
  const { productKey, subject, kind, requestId } = operation;
  if (productKey === null || !isLicenseKind(kind))
    throw new Error(`operation ${operation.id} has no product`);
  return upstream.change({ productKey, licenseKey: subject, kind, requestId }, lifetime);
}

function isLicenseKind(kind: Operation['kind']): kind is LicenseOperationKind {
  return kind === 'usage' || kind === 'decrease' || kind === 'disable' || kind === 'enable';
}

type DeliveryWaitsParts = {
  reader: Reader;
  clock: Clock;
  limiter: UpstreamLimiter;
  /** Ends every wait. */
  lifetime: AbortSignal;
};

/** Callers who wait for what becomes of their operation. */
class DeliveryWaits implements Pick<Deliveries, 'waitFor'> {
  readonly #parts: DeliveryWaitsParts;
  readonly #looks = new Set<() => void>();

  constructor(parts: DeliveryWaitsParts) {
    this.#parts = parts;
  }

  /** Something of the outbox moved, or of the way up: each looks whether its wait is over. */
  look(): void {
    for (const look of this.#looks) look();
  }

  async waitFor(
    operationId: string,
    { waitMs, untilFailure }: { waitMs: number; untilFailure: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, lifetime } = this.#parts;
    const deadline = clock.elapsed() + waitMs;
    const leaving = AbortSignal.any([signal, lifetime]);
    const wake = new Wake(clock);
    const look = (): void => wake.up();
    this.#looks.add(look);
    try {
      while (!this.#isSettled(operationId, untilFailure) && clock.elapsed() < deadline && !leaving.aborted) {
        await wake.wait(deadline - clock.elapsed(), leaving);
      }
    } finally {
      this.#looks.delete(look);
    }
  }

  #isSettled(operationId: string, untilFailure: boolean): boolean {
    const { reader, limiter } = this.#parts;
    const operation = reader.operations.get(operationId);
    if (operation === null) return true;
    const { progress } = operation;
    if (progress.state === 'in_flight') return false;
    if (progress.state !== 'pending') return progress.state !== 'uncertain' || untilFailure || progress.held;
    const stuck = !limiter.isAccepted(operation.productKey);
    return untilFailure && (operation.failures > 0 || stuck || !limiter.admission().admitted);
  }
}
