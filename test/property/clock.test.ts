import { array, assert, constantFrom, integer, nat, oneof, option, property, record } from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  acceptTime,
  checkWall,
  followWall,
  hearDate,
  isSuspect,
  learnDate,
  markOf,
  startTimeState,
  timeOf,
  type ClockReading,
  type CorrectedTime,
  type TimeState,
} from '../../src/domain/clock.ts';
import { freshnessAt } from '../../src/domain/agent/license-snapshot.ts';

const day = 86_400_000;
const policy = { freshMs: day, staleMs: 7 * day, graceMs: 14 * day };
const ages = ['fresh', 'stale', 'grace', 'expired'] as const;

/** Inputs to a machine and its process, except responses of the upstream. */
type Input =
  { input: 'pass'; ms: number } | { input: 'turn'; byMs: number } | { input: 'restart'; offMs: number };

const pass = record({ input: constantFrom('pass' as const), ms: nat(3 * day) });
const turn = (most: number) =>
  record({ input: constantFrom('turn' as const), byMs: integer({ min: -400 * day, max: most }) });
const restart = record({ input: constantFrom('restart' as const), offMs: nat(3 * day) });

/** A response of the store; `error`: of its `Date`, in ms; null: it has none. */
type Response = { input: 'response'; error: number | null };

const response = record({
  input: constantFrom('response' as const),
  error: option(oneof(constantFrom(0), integer({ min: -400 * day, max: 400 * day })), { freq: 5 }),
});

/** A machine, a process that reads the clock after each input, and the stored time. */
class Machine {
  keeping: TimeState;
  /** The time that really is. */
  truth: number = Date.UTC(2026, 0, 1);
  /** When the store confirmed a key; a correction of the stored dates moves it. */
  confirmedAt: number = this.truth;
  #reading: ClockReading = { wall: this.truth, monotonic: 0 };

  constructor() {
    this.keeping = startTimeState(null, this.#reading);
  }

  get isSuspect(): boolean {
    return isSuspect(this.keeping, this.#reading);
  }

  get age(): number {
    return this.now - this.confirmedAt;
  }

  /** Hears a response as the daemon does; it confirms no key. */
  hear({ error }: Pick<Response, 'error'>): void {
    if (error === null) this.keeping = acceptTime(this.keeping);
    else this.#correct(hearDate(this.keeping, this.truth + error, this.#reading));
    this.checkWall();
  }

  checkWall(): void {
    this.#correct(checkWall(this.keeping, this.#reading));
  }

  get now(): number {
    return timeOf(this.keeping);
  }

  suffer(input: Input): void {
    const { wall, monotonic } = this.#reading;
    if (input.input === 'turn') this.#reading = { wall: wall + input.byMs, monotonic };
    else {
      const passed = input.input === 'pass' ? input.ms : input.offMs;
      this.#reading = { wall: wall + passed, monotonic: monotonic + passed };
      this.truth += passed;
    }
    if (input.input === 'restart') {
      this.#reading = { ...this.#reading, monotonic: 0 };
      this.keeping = startTimeState(markOf(this.keeping), this.#reading);
    } else this.#correct(followWall(this.keeping, this.#reading));
  }

  learn(date: number): void {
    this.keeping = learnDate(this.keeping, date, this.#reading);
  }

  #correct({ state, shifts }: CorrectedTime): void {
    this.keeping = state;
    for (const { after, until = Infinity, byMs } of shifts)
      if (this.confirmedAt > (after ?? -Infinity) && this.confirmedAt <= until) this.confirmedAt -= byMs;
  }

  turnTo(wall: number): void {
    this.suffer({ input: 'turn', byMs: wall - this.#reading.wall });
  }
}

/** How bad the verdict is about a key that was confirmed then. */
function badness(confirmedAt: number, now: number): number {
  return ages.indexOf(freshnessAt(confirmedAt, policy, now));
}

describe('a verdict without a new response', () => {
  it('a verdict is not improved by a clock that is changed, neither while the process runs nor across a restart', () => {
    // A jump of up to 30 days is stored; a start cannot know of a longer one.
    const inputs = array(oneof(pass, turn(29 * day), restart), { maxLength: 40 });
    assert(
      property(inputs, (all) => {
        const machine = new Machine();
        const confirmedAt = machine.now;
        let worst = 0;
        for (const input of all) {
          machine.suffer(input);
          const bad = badness(confirmedAt, machine.now);
          expect(bad).toBeGreaterThanOrEqual(worst);
          worst = bad;
        }
      }),
    );
  });

  it('a verdict is not improved by a clock jump of any length while the process runs', () => {
    const inputs = array(oneof(pass, turn(4000 * day)), { maxLength: 40 });
    assert(
      property(inputs, (all) => {
        const machine = new Machine();
        let latest = machine.now;
        for (const input of all) {
          machine.suffer(input);
          expect(machine.now).toBeGreaterThanOrEqual(latest);
          latest = machine.now;
        }
      }),
    );
  });

  it('a verdict after a start is no better than the stored time allows', () => {
    const inputs = array(oneof(pass, turn(4000 * day), restart), { maxLength: 40 });
    assert(
      property(inputs, (all) => {
        const machine = new Machine();
        let storedTime = machine.keeping.base;
        for (const input of all) {
          machine.suffer(input);
          expect(machine.keeping.base).toBeGreaterThanOrEqual(storedTime);
          expect(machine.now).toBeGreaterThanOrEqual(machine.keeping.base);
          storedTime = machine.keeping.base;
        }
      }),
    );
  });
});

describe('a signed date', () => {
  it('a response is never older than the dates of it and the next response, and takes back no confirmed time', () => {
    const inputs = array(oneof(pass, turn(4000 * day), restart), { maxLength: 20 });
    assert(
      property(inputs, integer({ min: -100 * day, max: 100 * day }), (all, off) => {
        const machine = new Machine();
        machine.learn(machine.now);
        for (const input of all) machine.suffer(input);
        const { base } = machine.keeping;
        // A single date far ahead is not accepted.
        for (let said = 0; said < 2; said += 1) machine.learn(base + off);
        expect(machine.now).toBe(Math.max(base, base + off));
      }),
    );
  });

  it('a response makes a corrected wall clock count as correct', () => {
    assert(
      property(nat(20 * day), (ahead) => {
        const machine = new Machine();
        const truth = machine.now;
        machine.suffer({ input: 'turn', byMs: ahead + 31 * day });
        machine.learn(truth);
        machine.turnTo(truth);
        machine.suffer({ input: 'pass', ms: day });
        expect(machine.now).toBe(truth + day);
        expect(machine.keeping).toMatchObject({ aheadMs: 0, unverified: null });
      }),
    );
  });
});

describe('the dates of the store, which nobody signs', () => {
  it('no date moves the time of a machine whose clock is right', () => {
    assert(
      property(array(oneof(pass, restart, response), { maxLength: 40 }), (all) => {
        const machine = new Machine();
        for (const input of all) {
          if (input.input === 'response') machine.hear(input);
          else machine.suffer(input);
          expect(machine.now).toBe(machine.truth);
          expect(machine.age).toBe(machine.truth - Date.UTC(2026, 0, 1));
        }
      }),
    );
  });

  it('one date that agrees with the clock of the machine ends what wrong dates and clocks have left', () => {
    assert(
      property(array(oneof(pass, restart, response, turn(400 * day)), { maxLength: 40 }), (all) => {
        const machine = new Machine();
        for (const input of all) {
          if (input.input === 'response') machine.hear(input);
          else machine.suffer(input);
        }
        machine.turnTo(machine.truth);
        machine.hear({ error: 0 });
        // The clocks agree within ten minutes.
        expect(Math.abs(machine.now - machine.truth)).toBeLessThanOrEqual(600_000);
        expect(machine.isSuspect).toBe(false);
        expect(markOf(machine.keeping)).toMatchObject({ at: machine.now, claimedMs: 0, undatedMs: 0 });
      }),
    );
  });

  it('no date makes a key younger than it is on the same machine without a date', () => {
    assert(
      property(array(oneof(pass, restart, response, turn(26 * day)), { maxLength: 40 }), (all) => {
        const [machine, undated] = [new Machine(), new Machine()];
        // The responses come after the one that has confirmed the key.
        for (const each of [machine, undated]) each.suffer({ input: 'pass', ms: 2 });
        for (const input of all) {
          if (input.input === 'response') machine.hear(input);
          else for (const each of [machine, undated]) each.suffer(input);
          machine.checkWall();
          expect(machine.age).toBeGreaterThanOrEqual(undated.age);
        }
      }),
    );
  });
});
