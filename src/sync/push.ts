import type { Deliveries, Clock, Log, Upstream } from '../service/ports.ts';
import type { SyncPolicy } from '../service/outbox/queue.ts';
import type { LaneKey } from '../service/outbox/tables.ts';
import { Wake, persist } from './waiting.ts';
import type { License } from '../domain/license.ts';
import type { Step } from '../domain/outbox/delivery.ts';
import type { LicenseOperationKind, Operation } from '../domain/outbox/operation.ts';
import type { Outcome } from '../domain/outbox/outcome.ts';
import type { CommandOf, Writer } from '../service/writer.ts';
import type { UpstreamMeter } from '../service/status.ts';
import type { Reader } from '../service/tables.ts';
import type { CouponSync } from './coupon-sync.ts';
import type { KeyLanes, LaneGuard } from './keyed-mutex.ts';
import { tellOfOtherWriter, type LicensePull } from './license-reads.ts';
import type { Uplink } from './upstream-limiter.ts';

/** The longest sleep between two looks at the outbox, in ms: it bounds the delay after the machine slept. */
const longestSleepMs = 30_000;
/** How many due lanes are read from the store at once, for each that is worked on at once. */
const readAhead = 4;

type PushParts = Omit<StepParts, 'onAnswered' | 'onRecorded' | 'settings'> & {
  settings: () => { lanes: number; policy: SyncPolicy };
};

/** What the steps of a run need, what ends it, and who is told that the store failed. */
type Run = { steps: StepParts; signal: AbortSignal; fail: (error: unknown) => void };

/** Delivers the outbox: takes lanes whose head is due, up to `sync.lanes` at once, each one step at a time. */
export class Push implements Deliveries {
  readonly #parts: PushParts;
  readonly #active = new Map<string, Promise<void>>();
  /** How many of those have their answer, which is being recorded: nothing of them is on its way. */
  #recording = 0;
  /** Lanes that were due when the outbox was last read, and have not been started; longest due first. */
  #due: LaneKey[] = [];
  readonly #wake: Wake;
  readonly #waits: DeliveryWaits;

  constructor(parts: PushParts) {
    this.#parts = parts;
    this.#wake = new Wake(parts.clock);
    this.#waits = new DeliveryWaits(parts);
  }

  wake(lane?: Pick<LaneKey, 'subject' | 'lane'>): void {
    if (lane === undefined) {
      this.#wake.up();
      this.#waits.look();
    } else if (this.#mayStart(lane)) {
      this.#wake.up();
    }
  }

  /**
   * Whether something new in a lane may be sent now. Else it is looked for anyway: at the end of each step, after a
   * pause and when the upstream is back. A change that is recorded meanwhile must not cost a look of its own.
   */
  #mayStart(lane: Pick<LaneKey, 'subject' | 'lane'>): boolean {
    const admission = this.#parts.uplink.admission();
    const isStopped = !admission.admitted && admission.againAt === null;
    return !isStopped && this.#hasRoom() && !this.#active.has(nameOf(lane));
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

  settled(...awaited: Parameters<Deliveries['settled']>): Promise<void> {
    return this.#waits.settled(...awaited);
  }

  /** Starts due lanes as long as there is room; returns how long nothing more is to be started, in ms. */
  #startDue(run: Run): number {
    const { reader, clock, uplink, settings } = this.#parts;
    const now = clock.steady();
    while (!run.signal.aborted) {
      this.#startKnown(run);
      const admission = uplink.admission();
      if (!admission.admitted) return admission.againAt === null ? Infinity : admission.againAt - now;
      if (!this.#hasRoom()) return Infinity;
      const due = reader.operations.due(now, settings().lanes * readAhead, (owner) =>
        uplink.isAccepted(owner),
      );
      this.#due = due.filter((lane) => !this.#active.has(nameOf(lane)));
      if (this.#due.length === 0) return (reader.operations.nextDueAt(now) ?? Infinity) - now;
    }
    return Infinity;
  }

  /**
   * Starts lanes that are known to be due as long as there is room, those first that have been for the longest. The
   * outbox is read again only when all have been started: what has become due meanwhile stands behind them.
   */
  #startKnown(run: Run): void {
    const { uplink } = this.#parts;
    // By the time that something may go up again, other lanes may be due.
    if (!uplink.admission().admitted) this.#due = [];
    while (this.#due.length > 0 && this.#hasRoom() && !run.signal.aborted) {
      const lane = this.#due.shift();
      if (lane !== undefined && uplink.isAccepted(lane.productKey)) this.#start(lane, run);
    }
  }

  /** One request is under way in each lane, and as many again may be waiting for their answer to be recorded. */
  #hasRoom(): boolean {
    const { lanes } = this.#parts.settings();
    return this.#active.size - this.#recording < lanes && this.#active.size < 2 * lanes;
  }

  #start(lane: LaneKey, run: Run): void {
    const name = nameOf(lane);
    const step = takeStep(run.steps, lane, run.signal)
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

function nameOf({ lane, subject }: Pick<LaneKey, 'subject' | 'lane'>): string {
  return `${lane} ${subject}`;
}

type StepParts = {
  reader: Reader;
  writer: Writer;
  upstream: Upstream;
  clock: Clock;
  log: Log;
  meter: UpstreamMeter;
  lanes: KeyLanes;
  uplink: Uplink;
  reads: LicensePull;
  coupons: CouponSync;
  settings: () => { policy: SyncPolicy };
  /** Called when an operation has its answer, which is being recorded from now on: nothing is on its way. */
  onAnswered: () => void;
  /** Called when that is recorded, or cannot be. */
  onRecorded: () => void;
  /** Ends requests under way. */
  lifetime: AbortSignal;
};

/** Takes one step of a lane: a send, or a read and what follows from it at once. */
async function takeStep(parts: StepParts, lane: LaneKey, signal: AbortSignal): Promise<void> {
  const { reader, lanes, uplink, reads, coupons } = parts;
  {
    using guard = await lanes.enter(lane.subject, [lane.lane], signal);
    const needs = await follow(parts, { lane, justRead: false, guard }, signal);
    if (needs !== 'read') return;
  }
  if (lane.lane === 'coupon') {
    const head = reader.operations.head(lane.subject, lane.lane);
    if (head !== null) await coupons.settle(head);
    return;
  }
  using guard = await lanes.enter(lane.subject, ['counter', 'state'], signal);
  const admission = await uplink.admit('push', signal);
  if (!admission.admitted || lane.productKey === null) return;
  const outcome = await reads.readNow(lane.productKey, lane.subject);
  if (outcome.outcome === 'applied' && !outcome.isCached)
    await follow(parts, { lane, justRead: true, guard }, signal);
}

/** Plans the next step of a lane and sends what is to be sent; a read is left to the caller, who holds one lane only. */
async function follow(
  parts: StepParts,
  { lane, justRead, guard }: { lane: LaneKey; justRead: boolean; guard: LaneGuard },
  signal: AbortSignal,
): Promise<'read' | 'nothing'> {
  const command = { subject: lane.subject, lane: lane.lane, justRead };
  // What held up a plan on a full disk may have taken long: it is admitted anew each time.
  const planned = await persist(parts.clock, signal, () => planAdmitted(parts, command, signal));
  if (planned === null) return 'nothing';
  if (planned.step === 'send') {
    await send(parts, planned.operation, guard);
    return 'nothing';
  }
  parts.uplink.giveBack();
  return planned.step === 'read' ? 'read' : 'nothing';
}

/** Null when nothing may go up now; a step that is no send has its admission to give back. */
async function planAdmitted(
  { writer, uplink }: StepParts,
  command: CommandOf<'planStep'>,
  signal: AbortSignal,
): Promise<Step | null> {
  // Wait for the rate limit first: an operation that is marked in flight must be sent at once.
  const admission = await uplink.admit('push', signal);
  if (!admission.admitted) return null;
  try {
    const planned = await writer.write('planStep', command);
    return planned.ok ? planned.value : { step: 'none' };
  } catch (error) {
    uplink.giveBack();
    throw error;
  }
}

async function send(parts: StepParts, operation: Operation, guard: LaneGuard): Promise<void> {
  const { writer, clock, log, uplink, coupons, settings, lifetime } = parts;
  if (operation.kind === 'create_coupon') {
    await coupons.send(operation);
    return;
  }
  const sentAt = clock.steady();
  const outcome = await request(parts, operation);
  uplink.observe(outcome, { owner: operation.productKey, subject: operation.subject, sentAt });
  const { policy } = settings();
  parts.onAnswered();
  const recorded = await persist(clock, lifetime, () => {
    // While a full disk kept the answer back, the other lane may have been sent something, and answered.
    const { overlapped } = guard;
    return writer.write('recordAnswer', { operationId: operation.id, outcome, overlapped, policy });
  }).finally(parts.onRecorded);
  if (!recorded.ok) return;
  const { unexpected, state, lastError: error } = recorded.value;
  const { id, subject: licenseKey, requestId } = operation;
  if (unexpected !== null) tellOfOtherWriter(parts, { operation: id, licenseKey, ...unexpected }, policy);
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
  uplink: Uplink;
  /** Ends every wait. */
  lifetime: AbortSignal;
};

/** Callers who wait for what becomes of their operation. */
class DeliveryWaits implements Pick<Deliveries, 'settled'> {
  readonly #parts: DeliveryWaitsParts;
  readonly #looks = new Set<() => void>();

  constructor(parts: DeliveryWaitsParts) {
    this.#parts = parts;
  }

  /** Something of the outbox moved, or of the way up: each looks whether its wait is over. */
  look(): void {
    for (const look of this.#looks) look();
  }

  async settled(
    operationId: string,
    { waitMs, untilFailure }: { waitMs: number; untilFailure: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, lifetime } = this.#parts;
    const deadline = clock.steady() + waitMs;
    const leaving = AbortSignal.any([signal, lifetime]);
    const wake = new Wake(clock);
    const look = (): void => wake.up();
    this.#looks.add(look);
    try {
      while (!this.#isSettled(operationId, untilFailure) && clock.steady() < deadline && !leaving.aborted) {
        await wake.wait(deadline - clock.steady(), leaving);
      }
    } finally {
      this.#looks.delete(look);
    }
  }

  #isSettled(operationId: string, untilFailure: boolean): boolean {
    const { reader, uplink } = this.#parts;
    const operation = reader.operations.get(operationId);
    if (operation === null) return true;
    const { progress } = operation;
    if (progress.state === 'in_flight') return false;
    if (progress.state !== 'pending') return progress.state !== 'uncertain' || untilFailure || progress.held;
    const stuck = !uplink.isAccepted(operation.productKey);
    return untilFailure && (operation.failures > 0 || stuck || !uplink.admission().admitted);
  }
}
