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
    void wake.wait(ms, signal).then(() => woken.push(time.elapsed));
  };
  return { time, wake, sleep, woken };
}
type Sleep = (ms: number, signal?: AbortSignal) => void;

describe('a sleep that can be ended early', () => {
  it('ends by itself when its time has come', async () => {
    const { time, sleep, woken } = createSleeper();
    sleep(100);
    await time.advance(200);
    expect(woken).toEqual([100]);
  });

  it('ends when it is woken', async () => {
    const { time, wake, sleep, woken } = createSleeper();
    sleep(Infinity);
    await time.advance(50);
    wake.up();
    await time.settle();
    expect(woken).toEqual([50]);
    expect(time.sleeping).toBe(0);
  });

  it('leaves nothing at a signal that lives as long as the process', async () => {
    const { time, wake, sleep, woken } = createSleeper();
    const { signal } = new AbortController();
    sleep(Infinity, signal);
    wake.up();
    await time.settle();
    expect(woken).toEqual([0]);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('does not begin when it was woken while nobody slept, and only that once', async () => {
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

  it('ends, and does not fail, when its signal says so', async () => {
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

  it('does not begin for no time at all', async () => {
    const { time, sleep, woken } = createSleeper();
    sleep(0);
    sleep(-5);
    await time.settle();
    expect(woken).toEqual([0, 0]);
  });
});
