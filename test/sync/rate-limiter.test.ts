import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { RateLimiter, type Priority } from '../../src/sync/rate-limiter.ts';
import { VirtualTime, type VirtualClock } from '../support/harness/virtual-clock.ts';

const forEver = new AbortController().signal;
const second = 1000;

/** A rate on virtual time, and a record of turns, in seconds from the start. */
class Shop {
  readonly time: VirtualTime = new VirtualTime();
  readonly clock: VirtualClock = this.time.clock({ wall: 0 });
  readonly ending: AbortController = new AbortController();
  readonly turns: string[] = [];
  readonly rate: RateLimiter;
  perSecond: number;

  constructor(perSecond: number) {
    this.perSecond = perSecond;
    this.rate = new RateLimiter(this.clock, () => this.perSecond, this.ending.signal);
  }

  come(priority: Priority, count: number = 1, signal: AbortSignal = forEver): void {
    for (let index = 0; index < count; index += 1) {
      void this.rate.acquire(priority, signal).then(
        () => this.turns.push(`${priority} ${this.clock.monotonic() / second}`),
        (error: unknown) => this.turns.push(`${priority} gives up: ${String(error)}`),
      );
    }
  }

  /** The turns without their times. */
  get order(): string[] {
    return this.turns.map((turn) => turn.split(' ')[0] ?? '');
  }
}

describe('the rate of requests to the upstream', () => {
  it('the rate allows a burst of two seconds, then as many as one second allows', async () => {
    const shop = new Shop(5);
    shop.come('delivery', 13);
    await shop.time.settle();
    expect(shop.turns).toEqual(Array(10).fill('delivery 0'));
    await shop.time.advance(second);
    expect(shop.turns.slice(10)).toEqual(['delivery 0.2', 'delivery 0.4', 'delivery 0.6']);
  });

  it('the rate is kept over any time, with no more requests than the burst in addition', async () => {
    const shop = new Shop(3);
    shop.come('delivery', 1000);
    for (let passed = 1; passed <= 60; passed += 1) {
      await shop.time.advance(second);
      expect(shop.turns.length).toBeLessThanOrEqual(6 + 3 * passed);
    }
    expect(shop.turns.length).toBeGreaterThanOrEqual(6 + 3 * 60 - 1);
  });

  it('the rate saves no more than the burst', async () => {
    const shop = new Shop(5);
    await shop.time.advance(3600 * second);
    shop.come('delivery', 20);
    await shop.time.settle();
    expect(shop.turns.length).toBe(10);
  });

  it('the rate lets one request through at once even if it is less than one per second', async () => {
    const shop = new Shop(0.25);
    shop.come('delivery', 3);
    await shop.time.advance(8 * second);
    expect(shop.turns).toEqual(['delivery 0', 'delivery 4', 'delivery 8']);
  });

  it('the rate serves callers first, then deliveries, then refreshes, each with a reserve', async () => {
    const shop = new Shop(1);
    shop.come('refresh', 2);
    await shop.time.settle();
    shop.turns.length = 0;
    for (const priority of ['refresh', 'delivery', 'caller'] as const) shop.come(priority, 20);
    await shop.time.advance(16 * second);
    const counted = (priority: Priority): number => shop.order.filter((name) => name === priority).length;
    expect([counted('caller'), counted('delivery'), counted('refresh')]).toEqual([10, 4, 2]);
  });

  it('the rate wastes no turn on an unused reserve', async () => {
    const shop = new Shop(1);
    shop.come('refresh', 18);
    await shop.time.advance(16 * second);
    expect(shop.order.length).toBe(18);
  });

  it('the rate serves equals in the order of their arrival', async () => {
    const shop = new Shop(1);
    const names: string[] = [];
    for (const name of ['a', 'b', 'c', 'd'])
      void shop.rate.acquire('delivery', forEver).then(() => names.push(name));
    await shop.time.advance(10 * second);
    expect(names).toEqual(['a', 'b', 'c', 'd']);
  });

  it('the rate gives no turn to a waiter that has given up', async () => {
    const shop = new Shop(1);
    const leaving = new AbortController();
    shop.come('delivery', 2);
    shop.come('caller', 1, leaving.signal);
    shop.come('delivery', 1);
    await shop.time.settle();
    leaving.abort('gone');
    await shop.time.advance(second);
    expect(shop.turns).toEqual(['delivery 0', 'delivery 0', 'caller gives up: gone', 'delivery 1']);
    await expect(shop.rate.acquire('delivery', leaving.signal)).rejects.toBe('gone');
  });

  it('a returned turn is given to another waiter at once', async () => {
    const shop = new Shop(1);
    shop.come('delivery', 3);
    await shop.time.settle();
    expect(shop.turns.length).toBe(2);
    shop.rate.giveBack();
    await shop.time.settle();
    expect(shop.turns).toEqual(['delivery 0', 'delivery 0', 'delivery 0']);
  });

  it('returned turns do not raise the rate', async () => {
    const shop = new Shop(1);
    for (let index = 0; index < 10; index += 1) shop.rate.giveBack();
    shop.come('delivery', 5);
    await shop.time.settle();
    expect(shop.turns.length).toBe(2);
  });

  it('the rate follows the current configuration', async () => {
    const shop = new Shop(1);
    shop.come('delivery', 12);
    await shop.time.settle();
    shop.perSecond = 10;
    await shop.time.advance(2 * second);
    expect(shop.turns.length).toBe(12);
  });

  it('the rate sleeps only while a request waits, and ends with the process', async () => {
    const shop = new Shop(1);
    shop.come('delivery', 2);
    await shop.time.settle();
    expect(shop.time.sleeping).toBe(0);
    shop.come('delivery', 1);
    await shop.time.settle();
    expect(shop.time.sleeping).toBe(1);
    shop.ending.abort();
    await shop.time.settle();
    expect(shop.time.sleeping).toBe(0);
  });

  it('the rate lets callers take turns, so that a busy caller does not delay another', async () => {
    const shop = new Shop(1);
    const turns: string[] = [];
    const ask = (requester: string): void => {
      void shop.rate.acquire('caller', forEver, requester).then(() => turns.push(requester));
    };
    for (let count = 0; count < 100; count += 1) ask('crawler');
    ask('till');
    ask('shop');
    ask('till');
    await shop.time.advance(6 * second);
    expect(turns).toEqual(['crawler', 'crawler', 'crawler', 'till', 'shop', 'crawler', 'till', 'crawler']);
  });

  it('the rate leaves no listener on the signal of the process', async () => {
    const shop = new Shop(1);
    const { signal } = new AbortController();
    shop.come('delivery', 4, signal);
    await shop.time.advance(2 * second);
    expect(shop.turns).toHaveLength(4);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('the rate serves waiters first after it was raised', async () => {
    const shop = new Shop(1);
    shop.come('delivery', 3);
    await shop.time.advance(second / 10);
    expect(shop.turns).toHaveLength(2);
    shop.perSecond = 100;
    shop.come('refresh');
    await shop.time.settle();
    expect(shop.order).toEqual(['delivery', 'delivery', 'delivery', 'refresh']);
  });

  it('the rate forgets a caller who has given up', async () => {
    const shop = new Shop(1);
    const leaving = new AbortController();
    shop.come('caller', 2);
    const given = shop.rate.acquire('caller', leaving.signal, 'till').catch((error: unknown) => error);
    const kept = shop.rate.acquire('caller', forEver, 'till').then(() => 'went');
    leaving.abort('gone');
    expect(await given).toBe('gone');
    await shop.time.advance(second);
    expect(await kept).toBe('went');
    expect(shop.time.sleeping).toBe(0);
  });
});
