import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { Wake } from '../../src/sync/waiting.ts';
import { VirtualTime } from '../support/harness/virtual-clock.ts';

const forEver = new AbortController().signal;

function createSleeper(): { time: VirtualTime; wake: Wake; sleep: Sleep; woken: number[] } {
  const time = new VirtualTime();
  const wake = new Wake(time.clock());
  const woken: number[] = [];
  const sleep: Sleep = (ms, signal = forEver) => {
    void wake.wait(ms, signal).then(() => woken.push(time.monotonic));
  };
  return { time, wake, sleep, woken };
}
type Sleep = (ms: number, signal?: AbortSignal) => void;

describe('a sleep that can be ended early', () => {
  it('a sleep ends at its time', async () => {
    const { time, sleep, woken } = createSleeper();
    sleep(100);
    await time.advance(200);
    expect(woken).toEqual([100]);
  });

  it('a sleep ends when it is woken', async () => {
    const { time, wake, sleep, woken } = createSleeper();
    sleep(Infinity);
    await time.advance(50);
    wake.up();
    await time.settle();
    expect(woken).toEqual([50]);
    expect(time.sleeping).toBe(0);
  });

  it('a sleep leaves no listener on the signal of the process', async () => {
    const { time, wake, sleep, woken } = createSleeper();
    const { signal } = new AbortController();
    sleep(Infinity, signal);
    wake.up();
    await time.settle();
    expect(woken).toEqual([0]);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('a sleep is skipped once if it was woken before it began', async () => {
    const { time, wake, sleep, woken } = createSleeper();
    wake.up();
    wake.up();
    sleep(100);
    await time.settle();
    expect(woken).toEqual([0]);
    sleep(100);
    await time.advance(200);
    expect(woken).toEqual([0, 100]);
  });

  it('a sleep ends without an error when its signal is aborted', async () => {
    const { time, sleep, woken } = createSleeper();
    const ending = new AbortController();
    sleep(100, ending.signal);
    await time.advance(10);
    ending.abort();
    await time.settle();
    sleep(100, ending.signal);
    await time.settle();
    expect(woken).toEqual([10, 10]);
  });

  it('a sleep of no time does not begin', async () => {
    const { time, sleep, woken } = createSleeper();
    sleep(0);
    sleep(-5);
    await time.settle();
    expect(woken).toEqual([0, 0]);
  });
});
