import type { License } from '../domain/license.ts';
import type { Step } from '../domain/outbox/lane.ts';
import type { LicenseOperationKind, Operation } from '../domain/outbox/operation.ts';
import type { Outcome } from '../domain/outbox/outcome.ts';
import type { Clock, Deliveries, Log, Upstream } from '../service/ports.ts';
import type { CommandOf, Writer } from '../service/writer.ts';
import type { SyncPolicy } from '../service/outbox/policy.ts';
import type { UpstreamMeter } from '../service/status.ts';
import type { LaneKey, Reader } from '../service/tables.ts';
import type { CouponSync } from './coupon-sync.ts';
import type { KeyLanes, LaneGuard } from './key-lanes.ts';
import { tellOfOtherWriter } from './other-writer.ts';
import { persist } from './persist.ts';
import type { LicensePull } from './pull.ts';
import type { Uplink } from './uplink.ts';
import { Wake } from './wake.ts';

/** The longest sleep between two looks at the outbox, in ms: it bounds the delay after the machine slept. */
const longestSleepMs = 30_000;
/** How many due lanes are read from the store at once, for each that is worked on at once. */
const readAhead = 4;

export type PushParts = {
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
  settings: () => { lanes: number; policy: SyncPolicy };
  /** Ends requests under way. */
  lifetime: AbortSignal;
};

/** What ends the deliveries, and who is told that the store failed. */
type Run = { signal: AbortSignal; fail: (error: unknown) => void };

/** Delivers the outbox: takes lanes whose head is due, up to `sync.lanes` at once, each one step at a time. */
export class Push implements Deliveries {
  readonly #parts: PushParts;
  readonly #active = new Map<string, Promise<void>>();
  /** How many of those have their answer, which is being recorded: nothing of them is on its way. */
  #recording = 0;
  /** Lanes that were due when the outbox was last read, and have not been started; longest due first. */
  #due: LaneKey[] = [];
  readonly #wake: Wake;
  readonly #watchers = new Set<() => void>();

  constructor(parts: PushParts) {
    this.#parts = parts;
    this.#wake = new Wake(parts.clock);
  }

  wake(lane?: Pick<LaneKey, 'subject' | 'lane'>): void {
    if (lane === undefined) {
      this.#wake.up();
      this.#tellWatchers();
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

  #tellWatchers(): void {
    for (const watch of this.#watchers) watch();
  }

  /** Runs until the signal, then until what is in flight has been answered. Rejects when the store failed. */
  async run(signal: AbortSignal): Promise<void> {
    const failed = Promise.withResolvers<never>();
    const ends = async (): Promise<void> => {
      while (!signal.aborted) {
        const waitMs = this.#startDue({ signal, fail: failed.reject });
        await this.#wake.wait(Math.min(waitMs, longestSleepMs), signal);
      }
      await Promise.all(this.#active.values());
    };
    await Promise.race([ends(), failed.promise]);
  }

  async settled(
    operationId: string,
    { waitMs, untilFailure }: { waitMs: number; untilFailure: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, lifetime } = this.#parts;
    const deadline = clock.steady() + waitMs;
    const leaving = AbortSignal.any([signal, lifetime]);
    const watch = new Wake(clock);
    const look = (): void => watch.up();
    this.#watchers.add(look);
    try {
      while (!this.#isSettled(operationId, untilFailure) && clock.steady() < deadline && !leaving.aborted) {
        await watch.wait(deadline - clock.steady(), leaving);
      }
    } finally {
      this.#watchers.delete(look);
    }
  }

  #isSettled(operationId: string, untilFailure: boolean): boolean {
    const operation = this.#parts.reader.operations.get(operationId);
    if (operation === null) return true;
    const { progress } = operation;
    if (progress.state === 'in_flight') return false;
    if (progress.state !== 'pending') return progress.state !== 'uncertain' || untilFailure || progress.held;
    const { uplink } = this.#parts;
    const stuck = !uplink.isAccepted(operation.productKey);
    return untilFailure && (operation.failures > 0 || stuck || !uplink.admission().admitted);
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
    const step = this.#step(lane, run)
      .catch((error: unknown) => {
        if (!run.signal.aborted) run.fail(error);
      })
      .finally(() => {
        this.#active.delete(name);
        this.#startKnown(run);
        if (this.#due.length === 0) this.#wake.up();
        this.#tellWatchers();
      });
    this.#active.set(name, step);
  }

  /** One step of a lane: a send, or a read and what follows from it at once. */
  async #step(lane: LaneKey, run: Run): Promise<void> {
    const { lanes } = this.#parts;
    const { signal } = run;
    {
      using guard = await lanes.enter(lane.subject, [lane.lane], signal);
      const needs = await this.#plan(lane, { justRead: false, guard }, run);
      if (needs !== 'read') return;
    }
    if (lane.lane === 'coupon') {
      const head = this.#parts.reader.operations.head(lane.subject, lane.lane);
      if (head !== null) await this.#parts.coupons.settle(head);
      return;
    }
    using guard = await lanes.enter(lane.subject, ['counter', 'state'], signal);
    const admission = await this.#parts.uplink.admit('push', signal);
    if (!admission.admitted || lane.productKey === null) return;
    const outcome = await this.#parts.reads.readNow(lane.productKey, lane.subject);
    if (outcome.outcome === 'applied' && !outcome.isCached)
      await this.#plan(lane, { justRead: true, guard }, run);
  }

  async #plan(
    lane: LaneKey,
    { justRead, guard }: { justRead: boolean; guard: LaneGuard },
    run: Run,
  ): Promise<'read' | 'nothing'> {
    const { clock, uplink } = this.#parts;
    const command = { subject: lane.subject, lane: lane.lane, justRead };
    // What held up a plan on a full disk may have taken long: it is admitted anew each time.
    const planned = await persist(clock, run.signal, () => this.#planAdmitted(command, run.signal));
    if (planned === null) return 'nothing';
    if (planned.step === 'send') {
      await this.#send(planned.operation, guard, run);
      return 'nothing';
    }
    uplink.giveBack();
    return planned.step === 'read' ? 'read' : 'nothing';
  }

  /** Null when nothing may go up now; a step that is no send has its admission to give back. */
  async #planAdmitted(command: CommandOf<'planStep'>, signal: AbortSignal): Promise<Step | null> {
    const { writer, uplink } = this.#parts;
    // Wait for the rate limit first: an operation that is marked in flight must be sent at once.
    const admission = await uplink.admit('push', signal);
    if (!admission.admitted) return null;
    try {
      const planned = await writer.write('planStep', command);
      if (planned.ok) return planned.value;
    } catch (error) {
      uplink.giveBack();
      throw error;
    }
    uplink.giveBack();
    return null;
  }

  async #send(operation: Operation, guard: LaneGuard, run: Run): Promise<void> {
    if (operation.kind === 'create_coupon') {
      await this.#parts.coupons.send(operation);
      return;
    }
    const { writer, clock, log, uplink, settings, lifetime } = this.#parts;
    const outcome = await this.#request(operation);
    uplink.observe(outcome, { owner: operation.productKey, subject: operation.subject });
    const { policy } = settings();
    const { overlapped } = guard;
    this.#recording += 1;
    this.#startKnown(run);
    const recorded = await persist(clock, lifetime, () =>
      writer.write('recordAnswer', { operationId: operation.id, outcome, overlapped, policy }),
    ).finally(() => {
      this.#recording -= 1;
    });
    if (!recorded.ok) return;
    const { unexpected, state, lastError: error } = recorded.value;
    const { id, subject: licenseKey, requestId } = operation;
    if (unexpected !== null) tellOfOtherWriter(this.#parts, { operation: id, licenseKey, ...unexpected });
    if (state !== 'delivered' && state !== 'inferred') {
      const about = { operation: id, licenseKey, state, error, requestId };
      log.warn(about, 'an operation was not delivered');
    }
  }

  #request(operation: Operation): Promise<Outcome<License>> {
    const { upstream, lifetime } = this.#parts;
    const { productKey, subject, kind, requestId } = operation;
    if (productKey === null || !isLicenseKind(kind))
      throw new Error(`operation ${operation.id} has no product`);
    return upstream.change({ productKey, licenseKey: subject, kind, requestId }, lifetime);
  }
}

function isLicenseKind(kind: Operation['kind']): kind is LicenseOperationKind {
  return kind === 'usage' || kind === 'decrease' || kind === 'disable' || kind === 'enable';
}

function nameOf({ lane, subject }: Pick<LaneKey, 'subject' | 'lane'>): string {
  return `${lane} ${subject}`;
}
