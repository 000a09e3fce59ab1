import { expect, it } from 'vitest';
import { VirtualTime, type VirtualClock } from './virtual-clock.ts';

const never = new AbortController().signal;
const hour = 3_600_000;

function createClock(): { time: VirtualTime; clock: VirtualClock; woken: string[]; sleeper: Sleeper } {
  const time = new VirtualTime();
  const clock = time.clock({ wall: 0 });
  const woken: string[] = [];
  const sleeper = async (name: string, ms: number): Promise<void> => {
    await clock.sleep(ms, never);
    woken.push(`${name} at ${clock.monotonic()}`);
  };
  return { time, clock, woken, sleeper };
}
type Sleeper = (name: string, ms: number) => Promise<void>;

it('virtual time wakes sleepers by their time, then by the order of their calls', async () => {
  const { time, woken, sleeper } = createClock();
  void sleeper('third', 20);
  void sleeper('first', 10);
  void sleeper('second', 10);
  await time.advance(19);
  expect(woken).toEqual(['first at 10', 'second at 10']);
  await time.advance(1);
  expect(woken).toEqual(['first at 10', 'second at 10', 'third at 20']);
});

it('virtual time runs everything that follows from a wake-up before the next wake-up', async () => {
  const { time, clock, woken } = createClock();
  const loop = async (name: string, ms: number): Promise<void> => {
    for (let turn = 0; turn < 2; turn += 1) {
      await clock.sleep(ms, never);
      for (let step = 0; step < 50; step += 1) await Promise.resolve();
      woken.push(`${name} ${clock.monotonic()}`);
    }
  };
  void loop('a', 10);
  void loop('b', 15);
  await time.advance(100);
  expect(woken).toEqual(['a 10', 'b 15', 'a 20', 'b 30']);
});

it('virtual time stops at the requested time although a sleeper waits longer', async () => {
  const { time, clock, woken, sleeper } = createClock();
  void sleeper('late', 101);
  await time.advance(100);
  expect(clock.monotonic()).toBe(100);
  expect(woken).toEqual([]);
  expect(time.sleeping).toBe(1);
});

it('virtual time passes even if a loop sleeps for 0 ms', async () => {
  const { time, clock } = createClock();
  let turns = 0;
  const loop = async (): Promise<void> => {
    for (;;) {
      await clock.sleep(0, never);
      turns += 1;
    }
  };
  void loop();
  await time.advance(5);
  expect(turns).toBe(5);
});

it('an aborted signal ends a sleep with its reason', async () => {
  const { time, clock } = createClock();
  const controller = new AbortController();
  const reason = new Error('enough');
  const sleep = clock.sleep(10, controller.signal);
  controller.abort(reason);
  await expect(sleep).rejects.toBe(reason);
  await expect(clock.sleep(10, controller.signal)).rejects.toBe(reason);
  expect(time.sleeping).toBe(0);
});

it('virtual time runs until a condition holds', async () => {
  const { time, clock, woken, sleeper } = createClock();
  void sleeper('one', 10);
  void sleeper('two', 20);
  await time.runUntil(() => woken.length === 1, 100);
  expect(clock.monotonic()).toBe(10);
  await expect(time.runUntil(() => woken.length === 3, 50)).rejects.toThrow('within 50 ms');
  expect(clock.monotonic()).toBe(60);
});

it('virtual time runs until no sleeper has a time', async () => {
  const { time, clock, woken, sleeper } = createClock();
  void sleeper('for ever', Infinity);
  void sleeper('one', 10).then(() => sleeper('two', 15));
  await time.runUntilIdle(hour);
  expect(woken).toEqual(['one at 10', 'two at 25']);
  expect(clock.monotonic()).toBe(25);
  expect(time.nextAt()).toBeNull();
  expect(time.sleeping).toBe(1);
});

it('virtual time cannot run twice at the same time', async () => {
  const { time } = createClock();
  const first = time.advance(10);
  await expect(time.advance(10)).rejects.toThrow('already');
  await first;
  expect(time.monotonic).toBe(10);
});

it('the clock of a virtual machine only follows its wall clock forwards', async () => {
  const { time, clock } = createClock();
  clock.jumpWall(hour);
  expect(clock.now()).toBe(hour);
  clock.mark();
  clock.jumpWall(-2 * hour);
  expect(clock.now()).toBe(hour);
  await time.advance(10);
  expect(clock.now()).toBe(hour + 10);
  expect(clock.monotonic()).toBe(10);
  expect(clock.reading()).toEqual({ wall: -hour + 10, monotonic: 10 });
});

it('a virtual clock wakes no sleeper of a dead process, and the next process continues at the stored time', async () => {
  const { time, clock, woken, sleeper } = createClock();
  const ending = new AbortController();
  void sleeper('gone', 10);
  void clock.sleep(10, ending.signal).catch(() => woken.push('told'));
  clock.jumpWall(hour);
  const mark = clock.mark();
  clock.jumpWall(-hour);
  const next = clock.restarted(mark);
  void sleeper('gone too', 10);
  ending.abort();
  await time.advance(20);
  expect(woken).toEqual([]);
  expect(next.now()).toBe(hour + 20);
  expect(next.reading()).toEqual({ wall: 20, monotonic: 20 });
});
