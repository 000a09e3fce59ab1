import type { Deliveries } from '../service/ports.ts';
import type { SyncPolicy } from '../service/outbox/queue.ts';
import type { LaneKey } from '../service/outbox/tables.ts';
import { DeliveryWaits } from './delivery-waits.ts';
import { takeStep, type StepParts } from './lane-step.ts';
import { Wake } from './wake.ts';

/** The longest sleep between two looks at the outbox, in ms: it bounds the delay after the machine slept. */
const longestSleepMs = 30_000;
/** How many due lanes are read from the store at once, for each that is worked on at once. */
const readAhead = 4;

export type PushParts = Omit<StepParts, 'onAnswered' | 'onRecorded' | 'settings'> & {
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
