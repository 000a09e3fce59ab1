import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { Wake, KeyedMutex, type MutexGuard } from '../../src/sync/waiting.ts';
import { VirtualTime } from '../support/harness/virtual-clock.ts';
import type { QueueName } from '../../src/domain/outbox/operation.ts';

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

const time = new VirtualTime();

/** Queues, with the names of those that are in. */
class Gate {
  readonly mutex: KeyedMutex = new KeyedMutex();
  readonly log: string[] = [];
  readonly #visits = new Map<string, MutexGuard>();

  async come(
    name: string,
    queues: readonly QueueName[],
    { key = 'KEY', signal = forEver }: { key?: string; signal?: AbortSignal } = {},
  ): Promise<void> {
    void this.#enter(name, { key, queues, signal });
    await time.settle();
  }

  async leave(name: string): Promise<void> {
    this.#visit(name)[Symbol.dispose]();
    this.log.push(`${name} out`);
    await time.settle();
  }

  overlapped(name: string): boolean {
    return this.#visit(name).overlapped;
  }

  async #enter(
    name: string,
    where: { key: string; queues: readonly QueueName[]; signal: AbortSignal },
  ): Promise<void> {
    try {
      this.#visits.set(name, await this.mutex.enter(where.key, where.queues, where.signal));
      this.log.push(`${name} in`);
    } catch (error) {
      this.log.push(`${name} gives up: ${String(error)}`);
    }
  }

  #visit(name: string): MutexGuard {
    const visit = this.#visits.get(name);
    if (visit === undefined) throw new Error(`${name} is not in`);
    return visit;
  }
}

const both: readonly QueueName[] = ['counter', 'state'];

describe('the queues of a key', () => {
  it('a queue lets in one at a time', async () => {
    const gate = new Gate();
    await gate.come('a', ['counter']);
    await gate.come('b', ['counter']);
    await gate.come('c', ['state']);
    expect(gate.log).toEqual(['a in']);
    await gate.leave('a');
    expect(gate.log).toEqual(['a in', 'a out', 'b in', 'c in']);
  });

  it('one of each queue can be in at the same time', async () => {
    const gate = new Gate();
    await gate.come('a', ['counter']);
    await gate.come('b', ['state']);
    expect(gate.log).toEqual(['a in', 'b in']);
  });

  it('a read is in alone', async () => {
    const gate = new Gate();
    await gate.come('use', ['counter']);
    await gate.come('read', both);
    await gate.come('disable', ['state']);
    expect(gate.log).toEqual(['use in']);
    await gate.leave('use');
    expect(gate.log.at(-1)).toBe('read in');
    await gate.leave('read');
    expect(gate.log.at(-1)).toBe('disable in');
  });

  it('a waiter is never overtaken', async () => {
    const gate = new Gate();
    await gate.come('use', ['counter']);
    await gate.come('read', both);
    await gate.come('another read', both);
    await gate.come('another use', ['counter']);
    for (const name of ['use', 'read', 'another read']) await gate.leave(name);
    expect(gate.log.filter((line) => line.endsWith('in'))).toEqual([
      'use in',
      'read in',
      'another read in',
      'another use in',
    ]);
  });

  it('queues of other keys are independent', async () => {
    const gate = new Gate();
    await gate.come('a', both);
    await gate.come('b', both, { key: 'OTHER' });
    expect(gate.log).toEqual(['a in', 'b in']);
  });

  it('a queue reports who overlapped, whether before or after', async () => {
    const gate = new Gate();
    await gate.come('alone', ['counter']);
    await gate.leave('alone');
    await gate.come('first', ['counter']);
    expect(gate.overlapped('first')).toBe(false);
    await gate.come('second', ['state']);
    await gate.leave('second');
    await gate.come('read', both);
    await gate.leave('first');
    expect(['alone', 'first', 'second', 'read'].map((name) => gate.overlapped(name))).toEqual([
      false,
      true,
      true,
      false,
    ]);
  });

  it('a waiter that gives up is forgotten, and the next ones are let in', async () => {
    const gate = new Gate();
    const ending = new AbortController();
    await gate.come('use', ['counter']);
    await gate.come('read', both, { signal: ending.signal });
    await gate.come('disable', ['state']);
    ending.abort('it was told to');
    await time.settle();
    expect(gate.log).toEqual(['use in', 'disable in', 'read gives up: it was told to']);
  });

  it('queues leave no listener on the signal of the process', async () => {
    const gate = new Gate();
    const { signal } = new AbortController();
    await gate.come('use', both, { signal });
    await gate.come('read', both, { signal });
    await gate.leave('use');
    expect(gate.log.at(-1)).toBe('read in');
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('an abort does not end the turn of one that is in', async () => {
    const gate = new Gate();
    const ending = new AbortController();
    await gate.come('use', ['counter'], { signal: ending.signal });
    ending.abort();
    await gate.come('another', ['counter']);
    expect(gate.log).toEqual(['use in']);
  });

  it('a waiter that has given up before it came is not let in', async () => {
    const gate = new Gate();
    await gate.come('use', ['counter'], { signal: AbortSignal.abort('too late') });
    expect(gate.log).toEqual(['use gives up: too late']);
    await gate.come('another', both);
    expect(gate.log.at(-1)).toBe('another in');
  });
});
