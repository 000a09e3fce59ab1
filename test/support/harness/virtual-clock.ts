import type { ClockReading, TimeMark } from '../../../src/domain/clock.ts';
import { PersistentClock, type TimeSource } from '../../../src/daemon/system/clock.ts';

type Sleeper = {
  owner: VirtualClock;
  at: number;
  order: number;
  isForgotten: boolean;
  fire: () => void;
  forget: () => void;
};

/**
 * Time that passes only when a test advances it. Code under test may run between two instants as far as it
 * waits only for promises, not for sockets, files or real timers.
 */
export class VirtualTime {
  #monotonic = 0;
  #started = 0;
  #running = false;
  readonly #sleepers = new Set<Sleeper>();
  /** The sleepers with a time, as a binary heap, so that a fleet of agents does not slow each instant. */
  readonly #queue: Sleeper[] = [];

  /** How many turns of the event loop the code under test takes between two instants. */
  readonly #turns: number;

  /** `turns`: more than one if the code under test also waits for `setImmediate`, as injected requests do. */
  constructor(turns = 1) {
    this.#turns = turns;
  }

  /** Ms that have passed since the beginning. */
  get monotonic(): number {
    return this.#monotonic;
  }

  /** The number of sleepers, including those that sleep forever. */
  get sleeping(): number {
    return this.#sleepers.size;
  }

  /** The clock of a machine whose wall clock shows `wall` (epoch ms) now. */
  clock({ wall = defaultStart, mark = null }: { wall?: number; mark?: TimeMark | null } = {}): VirtualClock {
    return new VirtualClock(this, { wall, mark, upSince: this.#monotonic });
  }

  /** When the next sleeper wakes, in ms since the start. Null: no sleeper has a time. */
  nextAt(): number | null {
    return this.#next(Infinity)?.at ?? null;
  }

  /** Runs everything that can run without time passing. */
  async settle(): Promise<void> {
    // A turn of the event loop comes only after every promise that can settle has settled.
    for (let turn = 0; turn < this.#turns; turn += 1) {
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
    }
  }

  /** Advances time by `ms`: wakes sleepers one by one in the order of their time, then of their calls. */
  async advance(ms: number): Promise<void> {
    await this.#run(this.#monotonic + ms, () => false);
  }

  /**
   * Advances time until the condition holds, checking it before each instant. Throws if it does not hold in
   * time.
   */
  async runUntil(holds: () => boolean, withinMs: number): Promise<void> {
    await this.#run(this.#monotonic + withinMs, holds);
    if (!holds()) throw new Error(`the condition did not hold within ${withinMs} ms of virtual time`);
  }

  /** Advances time until only sleepers without a time are left. Throws if that takes longer. */
  async runUntilIdle(withinMs: number): Promise<void> {
    await this.runUntil(() => this.nextAt() === null, withinMs);
  }

  /** Used by `VirtualClock`. */
  sleep(owner: VirtualClock, ms: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    if (signal.aborted) reject(signal.reason as Error);
    else this.#add({ owner, ms, signal, resolve, reject });
    return promise;
  }

  /** Used by `VirtualClock`: its sleepers never wake. */
  forget(owner: VirtualClock): void {
    for (const sleeper of this.#sleepers) if (sleeper.owner === owner) sleeper.forget();
  }

  #add(sleep: {
    owner: VirtualClock;
    ms: number;
    signal: AbortSignal;
    resolve: () => void;
    reject: (reason: Error) => void;
  }): void {
    const { owner, ms, signal, resolve, reject } = sleep;
    const forget = (): void => {
      sleeper.isForgotten = true;
      this.#sleepers.delete(sleeper);
      signal.removeEventListener('abort', end);
    };
    const end = (): void => {
      forget();
      reject(signal.reason as Error);
    };
    const sleeper: Sleeper = {
      owner,
      // Like Node's timers: whole ms, and at least one, so that no loop can stop time.
      at: this.#monotonic + Math.max(1, Math.trunc(ms)),
      order: this.#started,
      isForgotten: false,
      fire: () => {
        forget();
        resolve();
      },
      forget,
    };
    this.#started += 1;
    signal.addEventListener('abort', end, { once: true });
    this.#sleepers.add(sleeper);
    if (sleeper.at < Infinity) push(this.#queue, sleeper);
  }

  async #run(until: number, holds: () => boolean): Promise<void> {
    if (this.#running) throw new Error('virtual time is passing already');
    this.#running = true;
    try {
      await this.settle();
      for (let next = this.#next(until); next !== null && !holds(); next = this.#next(until)) {
        this.#monotonic = next.at;
        next.fire();
        await this.settle();
      }
      if (!holds()) this.#monotonic = until;
    } finally {
      this.#running = false;
    }
  }

  #next(until: number): Sleeper | null {
    while (this.#queue[0]?.isForgotten === true) pop(this.#queue);
    const [next] = this.#queue;
    return next !== undefined && next.at <= until ? next : null;
  }
}

function isEarlier(one: Sleeper, other: Sleeper): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order);
}

function push(heap: Sleeper[], sleeper: Sleeper): void {
  let index = heap.length;
  for (let parent = (index - 1) >> 1; index > 0; parent = (index - 1) >> 1) {
    const above = heap[parent];
    if (above === undefined || !isEarlier(sleeper, above)) break;
    heap[index] = above;
    index = parent;
  }
  heap[index] = sleeper;
}

function pop(heap: Sleeper[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let index = 0;
  for (;;) {
    const [left, right] = [heap[2 * index + 1], heap[2 * index + 2]];
    if (left === undefined) break;
    const isRight = right !== undefined && isEarlier(right, left);
    const child = isRight ? right : left;
    if (!isEarlier(child, last)) break;
    heap[index] = child;
    index = 2 * index + (isRight ? 2 : 1);
  }
  heap[index] = last;
}

const defaultStart = Date.UTC(2026, 0, 1);

/** The clock of one process: the clock of the daemon on virtual time. */
export class VirtualClock extends PersistentClock {
  readonly #time: VirtualTime;
  readonly #machine: VirtualMachine;
  /** Whether the store has what the last response has shown about the time. */
  isRecorded = true;

  /** Use `VirtualTime.clock` or `restarted`. `upSince`: the start of the process in ms of virtual time. */
  constructor(time: VirtualTime, start: { wall: number; mark: TimeMark | null; upSince: number }) {
    const machine = new VirtualMachine(time, start);
    super(start.mark, machine);
    this.#time = time;
    this.#machine = machine;
    machine.clock = this;
  }

  /** The readings of the machine's clocks. */
  reading(): ClockReading {
    return this.#machine.read();
  }

  /** Changes the wall clock, forwards or (with a negative number) backwards. */
  jumpWall(byMs: number): void {
    this.#machine.wallOffset += byMs;
  }

  override checkWall(): boolean {
    return this.#noted(super.checkWall());
  }

  override hear(date: number | null): boolean {
    return this.#noted(super.hear(date));
  }

  override async record(...[store]: Parameters<PersistentClock['record']>): Promise<void> {
    await super.record(store);
    this.isRecorded = true;
  }

  #noted(mustRecord: boolean): boolean {
    if (mustRecord) this.isRecorded = false;
    return mustRecord;
  }

  /** Ends the process: the sleepers of this clock never wake. */
  stop(): void {
    this.#machine.isStopped = true;
    this.#time.forget(this);
  }

  /** Stops this process, and starts the next on the same machine from the stored mark. */
  restarted(mark: TimeMark | null): VirtualClock {
    this.stop();
    return new VirtualClock(this.#time, { wall: this.reading().wall, mark, upSince: this.#time.monotonic });
  }
}

class VirtualMachine implements TimeSource {
  readonly #time: VirtualTime;
  readonly #upSince: number;
  wallOffset: number;
  isStopped = false;
  clock: VirtualClock | null = null;

  constructor(time: VirtualTime, { wall, upSince }: { wall: number; upSince: number }) {
    this.#time = time;
    this.#upSince = upSince;
    this.wallOffset = wall - time.monotonic;
  }

  read(): ClockReading {
    const { monotonic } = this.#time;
    return { wall: this.wallOffset + monotonic, monotonic: monotonic - this.#upSince };
  }

  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (this.isStopped || this.clock === null) await new Promise<never>(() => undefined);
    else await this.#time.sleep(this.clock, ms, signal);
  }
}
