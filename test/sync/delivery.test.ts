import { describe, expect, it, vi } from 'vitest';
import { StorageError } from '../../src/service/ports.ts';
import { hour, lost, minute, no, second } from '../support/harness/service-harness.ts';
import {
  createManualHarness,
  key,
  never,
  productKey,
  type ManualHarness,
} from '../support/harness/manual-harness.ts';

/** Starts the delivery loop; returns a function that stops it, and a promise of its end. */
function run(harness: ManualHarness): { ending: AbortController; ended: Promise<unknown> } {
  const ending = new AbortController();
  return { ending, ended: harness.sync.delivery.run(ending.signal).catch(String) };
}

/** Whether a promise has settled. */
async function isOver(harness: ManualHarness, promise: Promise<unknown>): Promise<boolean> {
  let over = false;
  void promise.finally(() => (over = true));
  await harness.time.settle();
  return over;
}

/** A use that is recorded and in flight. */
async function createFlying(harness: ManualHarness) {
  const use = await harness.record('usage');
  const running = run(harness);
  return { use, request: await harness.request(), ...running };
}

describe('operations in the outbox', () => {
  it('an operation is sent, and its response is recorded', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    const { use, request } = await createFlying(harness);
    expect(request).toMatchObject({ kind: 'usage', productKey, licenseKey: key });
    expect(harness.stateOf(use)).toBe('in_flight');
    await request.answer(harness.says(6));
    expect(harness.stateOf(use)).toBe('delivered');
  });

  it('an operation is sent at once when the loop is woken', async () => {
    await using harness = await createManualHarness();
    run(harness);
    await harness.time.settle();
    await harness.record('usage');
    expect(await harness.requested()).toEqual([]);
    harness.sync.delivery.wake();
    expect(await harness.requested()).toEqual([`usage ${key}`]);
  });

  it('an operation is sent within half a minute without a wake-up', async () => {
    await using harness = await createManualHarness();
    run(harness);
    await harness.time.settle();
    await harness.record('usage');
    await harness.passes(30 * second);
    expect(await harness.requested()).toEqual([`usage ${key}`]);
  });

  it('operations of a queue are sent one by one, each at once after the response before it', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    const { request } = await createFlying(harness);
    await harness.record('decrease');
    harness.sync.delivery.wake();
    expect(await harness.requested()).toEqual([]);
    await request.answer(harness.says(6));
    expect(await harness.requested()).toEqual([`decrease ${key}`]);
  });

  it('an operation behind one in flight does not cause a read of the outbox', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    const { request } = await createFlying(harness);
    const reads = vi.spyOn(harness.store.operations, 'due');
    await harness.record('usage');
    harness.sync.delivery.wake({ subject: key, queue: 'counter' });
    await harness.time.settle();
    expect(reads).not.toHaveBeenCalled();
    await request.answer(harness.says(6));
    expect(await harness.requested()).toEqual([`usage ${key}`]);
  });

  it('operations cost the loop nothing while no queue is free, and are sent when one is', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    harness.options = { ...harness.options, concurrency: 1 };
    const { request } = await createFlying(harness);
    await harness.learn('OTHER');
    const sleeps = vi.spyOn(harness.clock, 'sleep');
    await harness.change('usage', { licenseKey: 'OTHER' });
    harness.sync.delivery.wake({ subject: 'OTHER', queue: 'counter' });
    await harness.time.settle();
    expect(sleeps).not.toHaveBeenCalled();
    await request.answer(harness.says(6));
    expect(await harness.requested()).toEqual(['usage OTHER']);
  });

  it('operations cost the loop nothing during a pause, and are sent after it', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    harness.sync.limiter.pause();
    run(harness);
    await harness.time.settle();
    const sleeps = vi.spyOn(harness.clock, 'sleep');
    await harness.record('usage');
    harness.sync.delivery.wake({ subject: key, queue: 'counter' });
    await harness.time.settle();
    expect(sleeps).not.toHaveBeenCalled();
    harness.sync.limiter.resume();
    expect(await harness.requested()).toEqual([`usage ${key}`]);
  });

  it('an operation that arrives during a Retry-After is sent after it', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    run(harness);
    await harness.time.settle();
    harness.sync.limiter.waitUntil(harness.clock.monotonic() + 2 * second);
    await harness.record('usage');
    harness.sync.delivery.wake({ subject: key, queue: 'counter' });
    await harness.passes(2 * second);
    expect(await harness.requested()).toEqual([`usage ${key}`]);
  });

  it('an operation is sent at once when its queue is named and has nothing in flight', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    await createFlying(harness);
    await harness.learn('OTHER');
    await harness.change('usage', { licenseKey: 'OTHER' });
    harness.sync.delivery.wake({ subject: 'OTHER', queue: 'counter' });
    expect(await harness.requested()).toEqual(['usage OTHER']);
  });

  it('an operation is sent next to the other queue of its key, and the overlapping response does not change the other queue', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    await harness.record('usage');
    await harness.record('disable');
    run(harness);
    expect((await harness.requested()).toSorted()).toEqual([`disable ${key}`, `usage ${key}`]);
    const requests = harness.arrived.splice(0);
    await requests.find(({ kind }) => kind === 'disable')?.answer(harness.says(5, { enabled: false }));
    // The response was made before the disable arrived.
    await requests.find(({ kind }) => kind === 'usage')?.answer(harness.says(6, { enabled: true }));
    expect(harness.local).toEqual({ uses: 6, enabled: false, pending: 0 });
  });

  it('an operation that is sent alone shows that another writer has disabled the key', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    const { request } = await createFlying(harness);
    await request.answer(harness.says(6, { enabled: false }));
    expect(harness.local).toEqual({ uses: 6, enabled: false, pending: 0 });
  });

  it('operations are sent from as many queues at once as configured', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    harness.options = { ...harness.options, concurrency: 2 };
    for (const licenseKey of ['A', 'B', 'C', 'D']) {
      await harness.learn(licenseKey);
      await harness.change('usage', { licenseKey });
    }
    run(harness);
    expect(await harness.requested()).toHaveLength(2);
    const [first] = harness.arrived.splice(0);
    await first?.answer(harness.saysOf(first.licenseKey));
    expect(await harness.requested()).toHaveLength(1);
  });

  it('operations are sent from no more queues at once than configured meanwhile', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    for (const licenseKey of ['A', 'B', 'C', 'D', 'E', 'F', 'G']) {
      await harness.learn(licenseKey);
      await harness.change('usage', { licenseKey });
    }
    run(harness);
    expect(await harness.requested()).toHaveLength(4);
    harness.options = { ...harness.options, concurrency: 3 };
    harness.sync.delivery.wake();
    expect(await harness.requested()).toHaveLength(4);
  });

  it('an answered operation frees its place before its response is stored, but only up to a limit', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    harness.options = { ...harness.options, concurrency: 1 };
    for (const licenseKey of ['A', 'B', 'C']) {
      await harness.learn(licenseKey);
      await harness.change('usage', { licenseKey });
    }
    const recording = Promise.withResolvers<void>();
    const write = harness.writer.write.bind(harness.writer);
    vi.spyOn(harness.writer, 'write').mockImplementation(async (name, ...rest) => {
      if (name === 'recordResponse') await recording.promise;
      return await write(name, ...rest);
    });
    run(harness);
    await (await harness.request()).answer(harness.saysOf('A'));
    await (await harness.request()).answer(harness.saysOf('B'));
    expect(await harness.requested()).toEqual([]);
    recording.resolve();
    expect(await harness.requested()).toEqual(['usage C']);
  });

  it('the outbox is not read once for each delivered operation', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    harness.options = { ...harness.options, concurrency: 2 };
    const keys = ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'];
    for (const licenseKey of keys) {
      await harness.learn(licenseKey);
      await harness.change('usage', { licenseKey });
    }
    const due = vi.spyOn(harness.store.operations, 'due');
    run(harness);
    await harness.time.settle();
    for (const _ of keys) {
      const [first] = harness.arrived.splice(0, 1);
      await first?.answer(harness.saysOf(first.licenseKey));
    }
    expect(await harness.requested()).toEqual([]);
    // One read for all operations, and two at the end that find nothing more.
    expect(due.mock.calls.length).toBeLessThanOrEqual(3);
  });

  it('an operation of a product whose secret was rejected stays queued, and delays no other product', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    harness.options = { ...harness.options, concurrency: 1 };
    for (const licenseKey of ['A', 'B']) {
      await harness.learn(licenseKey);
      await harness.change('usage', { licenseKey });
    }
    run(harness);
    const first = await harness.request();
    harness.sync.limiter.observe(no('unauthorized'), { owner: productKey, subject: 'B' });
    await first.answer(no('throttled'));
    expect(await harness.requested()).toEqual([]);
  });

  it('an operation that was not delivered is logged as a warning', async () => {
    for (const [outcome, warnings] of [
      [no('refused'), ['an operation was not delivered']],
      ['delivered', []],
    ] as const) {
      await using harness = await createManualHarness({ uses: 5 });
      const { request } = await createFlying(harness);
      await request.answer(outcome === 'delivered' ? harness.says(6) : outcome);
      expect(harness.warnings).toEqual(warnings);
    }
  });

  it('an inferred operation is not logged as undelivered', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    harness.policy = { ...harness.policy, writers: 'many' };
    const use = await harness.record('usage');
    await harness.answer(await harness.send('counter'), lost);
    run(harness);
    await harness.passes(minute);
    await (await harness.request()).answer(harness.says(5));
    await (await harness.request()).answer(harness.says(6));
    expect([harness.stateOf(use), harness.warnings]).toEqual(['inferred', []]);
  });

  it('an operation is read back after its reconcile delay, and a plan that sends nothing uses no turn', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    harness.options = { ...harness.options, rate: 0.5 };
    const use = await harness.record('usage');
    await harness.answer(await harness.send('counter'), lost);
    run(harness);
    await harness.passes(minute - 1);
    expect(await harness.requested()).toEqual([]);
    await harness.passes(1);
    const read = await harness.request();
    expect(read.kind).toBe('verify');
    await read.answer(harness.says(5));
    expect(harness.stateOf(use)).toBe('pending');
    await harness.passes(2 * second);
    expect(await harness.request()).toMatchObject({ kind: 'usage' });
  });

  it.each(['counter', 'state'] as const)(
    'an operation is read back while nothing else can enter the %s queue of its key',
    async (queue) => {
      await using harness = await createManualHarness({ uses: 5 });
      await harness.record('usage');
      await harness.answer(await harness.send('counter'), lost);
      run(harness);
      await harness.passes(minute);
      const read = await harness.request();
      const entering = harness.mutex.enter(key, [queue], never);
      expect(await isOver(harness, entering)).toBe(false);
      await read.answer(harness.says(6));
      expect(await isOver(harness, entering)).toBe(true);
    },
  );

  it('an operation that a caller’s read reconciled is sent at once', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    await harness.record('usage');
    await harness.answer(await harness.send('counter'), lost);
    run(harness);
    harness.sync.limiter.pause();
    await harness.passes(minute);
    const read = harness.sync.fetcher.fetchNow(productKey, key);
    const request = await harness.request();
    harness.sync.limiter.resume();
    await request.answer(harness.says(5));
    await read;
    expect(await harness.requested()).toContain(`usage ${key}`);
  });

  it('an operation is retried after its wait without a wake-up', async () => {
    await using harness = await createManualHarness();
    const { request } = await createFlying(harness);
    await request.answer(no('throttled'));
    await harness.passes(499);
    expect(await harness.requested()).toEqual([]);
    await harness.passes(1);
    expect(await harness.requested()).toEqual([`usage ${key}`]);
  });

  it('an operation waits during a pause by a person, and is sent after it', async () => {
    await using harness = await createManualHarness();
    harness.sync.limiter.pause();
    await harness.record('usage');
    run(harness);
    await harness.passes(hour);
    expect(await harness.requested()).toEqual([]);
    harness.sync.limiter.resume();
    expect(await harness.requested()).toEqual([`usage ${key}`]);
  });

  it('an operation is sent after a pause although the full disk cannot store the end of the pause', async () => {
    await using harness = await createManualHarness();
    harness.sync.limiter.pause();
    await harness.record('usage');
    run(harness);
    await harness.time.settle();
    harness.fault = new StorageError('full', null);
    harness.sync.limiter.resume();
    await harness.time.settle();
    harness.fault = null;
    await harness.passes(second);
    expect(await harness.requested()).toEqual([`usage ${key}`]);
  });

  it('a stop that ends before the full disk has room for a response is not a failure of the store', async () => {
    await using harness = await createManualHarness();
    await harness.record('usage');
    const running = harness.sync.run(harness.ending.signal);
    const request = await harness.request();
    harness.fault = new StorageError('full', null);
    await request.answer(harness.says(6));
    harness.lifetime.abort();
    await harness.time.settle();
    harness.ending.abort();
    await expect(running).resolves.toBeUndefined();
  });

  it('an operation is sent at once when a caller finds that its key exists again', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    const use = await harness.record('usage');
    await harness.read(no('missing'));
    await harness.passes(minute);
    await harness.read(no('missing'));
    expect(harness.stateOf(use)).toBe('dead');
    harness.sync.limiter.observe(harness.says(5), { owner: productKey, subject: key });
    await harness.time.settle();
    run(harness);
    void harness.sync.fetcher.fetchForCaller([productKey], key, never, null);
    await (await harness.request()).answer(harness.says(5));
    expect(await harness.requested()).toEqual([`usage ${key}`]);
  });

  it('an operation waits no longer than the outage that it waits for', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    harness.policy = { ...harness.policy, backoff: { firstMs: hour, maxMs: hour } };
    const { request } = await createFlying(harness);
    await request.answer(no('unreachable'));
    await harness.passes(minute);
    expect(await harness.requested()).toEqual([]);
    const reading = harness.sync.fetcher.fetch(productKey, 'OTHER', 'caller');
    await (await harness.request()).answer(harness.saysOf('OTHER'));
    await reading;
    expect(await harness.requested()).toEqual([`usage ${key}`]);
  });

  it('an operation waits while its secret is rejected', async () => {
    await using harness = await createManualHarness();
    const { request } = await createFlying(harness);
    await request.answer(no('unauthorized'));
    await harness.passes(10 * minute);
    expect(await harness.requested()).toEqual([]);
    harness.sync.limiter.retryCredentials();
    expect(await harness.requested()).toEqual([`usage ${key}`]);
  });

  it('an operation waits while its product is not configured, and is sent once the product is configured again', async () => {
    await using harness = await createManualHarness();
    const use = await harness.record('usage');
    const { options } = harness;
    harness.options = { ...options, productIds: ['other'] };
    run(harness);
    await harness.passes(10 * minute);
    expect(await harness.requested()).toEqual([]);
    expect(harness.operation(use).attempts).toBe(0);
    harness.options = options;
    harness.sync.limiter.retryCredentials();
    expect(await harness.requested()).toEqual([`usage ${key}`]);
  });

  it('an operation is not sent after a read whose secret was rejected', async () => {
    await using harness = await createManualHarness();
    await harness.read(harness.says(5, { enabled: false }));
    await harness.record('enable');
    run(harness);
    const read = await harness.request();
    expect(read.kind).toBe('verify');
    await read.answer(no('unauthorized'));
    expect(await harness.requested()).toEqual([]);
  });

  it('the response to an operation is kept until the full disk has room', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    const { use, request } = await createFlying(harness);
    harness.fault = new StorageError('full', null);
    await request.answer(harness.says(6));
    await harness.passes(minute);
    expect(harness.stateOf(use)).toBe('in_flight');
    harness.fault = null;
    await harness.passes(second);
    expect(harness.stateOf(use)).toBe('delivered');
  });

  it('a delayed response to a use does not undo the response to a later disable', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    const { use, request } = await createFlying(harness);
    harness.fault = new StorageError('full', null);
    await request.answer(harness.says(6));
    harness.fault = null;
    await harness.record('disable');
    harness.sync.delivery.wake();
    await (await harness.request()).answer(harness.says(6, { enabled: false }));
    expect(harness.stateOf(use)).toBe('in_flight');
    await harness.passes(second);
    expect(harness.stateOf(use)).toBe('delivered');
    expect(harness.snapshot.local).toEqual({ uses: 6, enabled: false, pending: 0 });
  });

  it('a delayed response to a disable does not make a later use look like another writer’s', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    await harness.record('disable');
    run(harness);
    const disable = await harness.request();
    harness.fault = new StorageError('full', null);
    await disable.answer(harness.says(5, { enabled: false }));
    harness.fault = null;
    await harness.record('usage');
    harness.sync.delivery.wake();
    await (await harness.request()).answer(harness.says(6, { enabled: false }));
    await harness.passes(second);
    expect(harness.snapshot.local).toEqual({ uses: 6, enabled: false, pending: 0 });
    expect(harness.snapshot.manyWriters).toBe(false);
  });

  it('an operation that the full disk keeps from being sent uses no turn', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    harness.options = { ...harness.options, rate: 0.5 };
    await harness.record('usage');
    harness.fault = new StorageError('full', null);
    run(harness);
    await harness.time.settle();
    harness.fault = null;
    await harness.passes(second);
    expect(await harness.requested()).toEqual([`usage ${key}`]);
  });

  it('an operation is not sent after a wait for the full disk if the upstream has sent Retry-After meanwhile', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    await harness.record('usage');
    harness.fault = new StorageError('full', null);
    run(harness);
    await harness.passes(second);
    harness.sync.limiter.observe(no('throttled', minute), { owner: productKey, subject: key });
    harness.fault = null;
    await harness.passes(30 * second);
    expect(await harness.requested()).toEqual([]);
    await harness.passes(minute);
    expect(await harness.requested()).toEqual([`usage ${key}`]);
  });

  it('the response to an operation reports a count that another writer has changed', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    const { use, request } = await createFlying(harness);
    await request.answer(harness.says(9));
    expect(harness.unexpected).toEqual([{ operation: use, licenseKey: key, expected: 6, got: 9 }]);
  });
});

describe('the delivery loop', () => {
  it('the delivery loop ends when it is stopped, after the operation in flight is answered', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    const { use, request, ending, ended } = await createFlying(harness);
    ending.abort();
    expect(await isOver(harness, ended)).toBe(false);
    await request.answer(harness.says(6));
    expect(await isOver(harness, ended)).toBe(true);
    expect(harness.stateOf(use)).toBe('delivered');
  });

  it('the delivery loop keeps a response that the full disk cannot store, even when it is stopped', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    const { use, request, ending, ended } = await createFlying(harness);
    harness.fault = new StorageError('full', null);
    await request.answer(harness.says(6));
    ending.abort();
    await harness.passes(minute);
    harness.fault = null;
    await harness.passes(minute);
    expect(harness.stateOf(use)).toBe('delivered');
    expect(await isOver(harness, ended)).toBe(true);
  });

  it('the delivery loop ends without a failure if an operation has not had its turn', async () => {
    await using harness = await createManualHarness();
    using _reading = await harness.mutex.enter(key, ['counter', 'state'], never);
    const use = await harness.record('usage');
    const { ending, ended } = run(harness);
    await harness.time.settle();
    ending.abort(new Error('told to end'));
    expect(await ended).toBe(undefined);
    expect(harness.stateOf(use)).toBe('pending');
  });

  it('the delivery loop ends if the store fails, and does not use the store again', async () => {
    await using harness = await createManualHarness();
    harness.fault = new StorageError('failed', null);
    await harness.record('usage');
    expect(await run(harness).ended).toBe('StorageError: the storage failed');
    const reads = vi.spyOn(harness.store.operations, 'due');
    await harness.time.settle();
    expect(reads).not.toHaveBeenCalled();
  });
});

describe('a caller who waits for an operation', () => {
  const wait = (harness: ManualHarness, id: string, untilFailure = false, signal = never): Promise<void> =>
    harness.sync.delivery.waitFor(id, { waitMs: 10 * second, untilFailure }, signal);

  it('a caller waits until the operation is delivered, and no longer', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    const { use, request } = await createFlying(harness);
    const waiting = wait(harness, use);
    expect(await isOver(harness, waiting)).toBe(false);
    await request.answer(harness.says(6));
    expect(await isOver(harness, waiting)).toBe(true);
    expect(await isOver(harness, wait(harness, use))).toBe(true);
  });

  it('a caller waits as long as requested', async () => {
    await using harness = await createManualHarness();
    const { use } = await createFlying(harness);
    const waiting = wait(harness, use);
    await harness.passes(10 * second - 1);
    expect(await isOver(harness, waiting)).toBe(false);
    await harness.passes(1);
    expect(await isOver(harness, waiting)).toBe(true);
  });

  it('a caller keeps waiting after a failed attempt, unless the failure matters', async () => {
    for (const outcome of [no('unreachable'), no('unauthorized'), lost]) {
      await using harness = await createManualHarness();
      const { use, request } = await createFlying(harness);
      const [patient, impatient] = [wait(harness, use), wait(harness, use, true)];
      expect(await isOver(harness, impatient)).toBe(false);
      await request.answer(outcome);
      expect([await isOver(harness, patient), await isOver(harness, impatient)]).toEqual([false, true]);
    }
  });

  it('a caller for whom a failure matters does not wait for an upstream that is down', async () => {
    await using harness = await createManualHarness();
    harness.sync.limiter.pause();
    const use = await harness.record('usage');
    expect(await isOver(harness, wait(harness, use, true))).toBe(true);
    expect(await isOver(harness, wait(harness, use))).toBe(false);
  });

  it('a caller does not wait for an operation that only a person can decide', async () => {
    await using harness = await createManualHarness({ uses: 5 });
    harness.policy = { ...harness.policy, writers: 'many', onUncertain: 'hold' };
    const use = await harness.record('usage');
    await harness.answer(await harness.send('counter'), lost);
    harness.pass(minute);
    await harness.read(harness.says(6));
    expect(harness.stateOf(use)).toBe('held');
    expect(await isOver(harness, wait(harness, use))).toBe(true);
  });

  it('a caller who leaves stops waiting', async () => {
    await using harness = await createManualHarness();
    const { use } = await createFlying(harness);
    const leaving = new AbortController();
    const waiting = wait(harness, use, false, leaving.signal);
    expect(await isOver(harness, waiting)).toBe(false);
    leaving.abort();
    expect(await isOver(harness, waiting)).toBe(true);
  });

  it('a caller does not wait for an operation that does not exist', async () => {
    await using harness = await createManualHarness();
    expect(await isOver(harness, wait(harness, 'none'))).toBe(true);
  });
});
