import { describe, expect, it, vi } from 'vitest';
import { StorageError } from '../../src/service/ports.ts';
import { hour, lost, minute, no, second } from '../support/stage/service-stage.ts';
import { givenManual, key, never, productKey, type ManualStage } from '../support/stage/manual-stage.ts';

/** Lets the outbox be carried up; gives what ends it, and its end. */
function run(stage: ManualStage): { ending: AbortController; ended: Promise<unknown> } {
  const ending = new AbortController();
  return { ending, ended: stage.sync.push.run(ending.signal).catch(String) };
}

/** Whether a promise has settled by now. */
async function isOver(stage: ManualStage, promise: Promise<unknown>): Promise<boolean> {
  let over = false;
  void promise.finally(() => (over = true));
  await stage.time.settle();
  return over;
}

/** A use that is recorded and in flight. */
async function givenFlying(stage: ManualStage) {
  const use = await stage.record('usage');
  const running = run(stage);
  return { use, request: await stage.request(), ...running };
}

describe('what waits in the outbox', () => {
  it('goes up, and its answer is recorded', async () => {
    await using stage = await givenManual({ uses: 5 });
    const { use, request } = await givenFlying(stage);
    expect(request).toMatchObject({ kind: 'usage', productKey, licenseKey: key });
    expect(stage.stateOf(use)).toBe('in_flight');
    await request.answer(stage.says(6));
    expect(stage.stateOf(use)).toBe('delivered');
  });

  it('goes up when it is told of, without waiting for anything else', async () => {
    await using stage = await givenManual();
    run(stage);
    await stage.time.settle();
    await stage.record('usage');
    expect(await stage.requested()).toEqual([]);
    stage.sync.push.wake();
    expect(await stage.requested()).toEqual([`usage ${key}`]);
  });

  it('goes up within half a minute when nobody tells of it', async () => {
    await using stage = await givenManual();
    run(stage);
    await stage.time.settle();
    await stage.record('usage');
    await stage.passes(30 * second);
    expect(await stage.requested()).toEqual([`usage ${key}`]);
  });

  it('goes up one by one in its lane, each at once after the answer before it', async () => {
    await using stage = await givenManual({ uses: 5 });
    const { request } = await givenFlying(stage);
    await stage.record('decrease');
    stage.sync.push.wake();
    expect(await stage.requested()).toEqual([]);
    await request.answer(stage.says(6));
    expect(await stage.requested()).toEqual([`decrease ${key}`]);
  });

  it('behind one that is under way does not have the outbox read for it', async () => {
    await using stage = await givenManual({ uses: 5 });
    const { request } = await givenFlying(stage);
    const reads = vi.spyOn(stage.store.operations, 'due');
    await stage.record('usage');
    stage.sync.push.wake({ subject: key, lane: 'counter' });
    await stage.time.settle();
    expect(reads).not.toHaveBeenCalled();
    await request.answer(stage.says(6));
    expect(await stage.requested()).toEqual([`usage ${key}`]);
  });

  it('costs the loop nothing while no lane is free, and goes up when one is', async () => {
    await using stage = await givenManual({ uses: 5 });
    stage.options = { ...stage.options, lanes: 1 };
    const { request } = await givenFlying(stage);
    await stage.learn('OTHER');
    const sleeps = vi.spyOn(stage.clock, 'sleep');
    await stage.change('usage', { licenseKey: 'OTHER' });
    stage.sync.push.wake({ subject: 'OTHER', lane: 'counter' });
    await stage.time.settle();
    expect(sleeps).not.toHaveBeenCalled();
    await request.answer(stage.says(6));
    expect(await stage.requested()).toEqual(['usage OTHER']);
  });

  it('costs the loop nothing during a pause, and goes up after it', async () => {
    await using stage = await givenManual({ uses: 5 });
    stage.sync.uplink.pause();
    run(stage);
    await stage.time.settle();
    const sleeps = vi.spyOn(stage.clock, 'sleep');
    await stage.record('usage');
    stage.sync.push.wake({ subject: key, lane: 'counter' });
    await stage.time.settle();
    expect(sleeps).not.toHaveBeenCalled();
    stage.sync.uplink.resume();
    expect(await stage.requested()).toEqual([`usage ${key}`]);
  });

  it('that comes while the upstream asks to wait goes up when that is over', async () => {
    await using stage = await givenManual({ uses: 5 });
    run(stage);
    await stage.time.settle();
    stage.sync.uplink.waitUntil(stage.clock.steady() + 2 * second);
    await stage.record('usage');
    stage.sync.push.wake({ subject: key, lane: 'counter' });
    await stage.passes(2 * second);
    expect(await stage.requested()).toEqual([`usage ${key}`]);
  });

  it('goes up at once when its lane is told of, and nothing of it is under way', async () => {
    await using stage = await givenManual({ uses: 5 });
    await givenFlying(stage);
    await stage.learn('OTHER');
    await stage.change('usage', { licenseKey: 'OTHER' });
    stage.sync.push.wake({ subject: 'OTHER', lane: 'counter' });
    expect(await stage.requested()).toEqual(['usage OTHER']);
  });

  it('goes up beside the other lane of its key; an answer that overlapped says nothing of that one', async () => {
    await using stage = await givenManual({ uses: 5 });
    await stage.record('usage');
    await stage.record('disable');
    run(stage);
    expect((await stage.requested()).toSorted()).toEqual([`disable ${key}`, `usage ${key}`]);
    const requests = stage.arrived.splice(0);
    await requests.find(({ kind }) => kind === 'disable')?.answer(stage.says(5, { enabled: false }));
    // It was made before the disable arrived.
    await requests.find(({ kind }) => kind === 'usage')?.answer(stage.says(6, { enabled: true }));
    expect(stage.local).toEqual({ uses: 6, enabled: false, pending: 0 });
  });

  it('goes up alone; its answer tells that somebody has disabled the key', async () => {
    await using stage = await givenManual({ uses: 5 });
    const { request } = await givenFlying(stage);
    await request.answer(stage.says(6, { enabled: false }));
    expect(stage.local).toEqual({ uses: 6, enabled: false, pending: 0 });
  });

  it('goes up in as many lanes at once as are configured', async () => {
    await using stage = await givenManual({ uses: 5 });
    stage.options = { ...stage.options, lanes: 2 };
    for (const licenseKey of ['A', 'B', 'C', 'D']) {
      await stage.learn(licenseKey);
      await stage.change('usage', { licenseKey });
    }
    run(stage);
    expect(await stage.requested()).toHaveLength(2);
    const [first] = stage.arrived.splice(0);
    await first?.answer(stage.saysOf(first.licenseKey));
    expect(await stage.requested()).toHaveLength(1);
  });

  it('goes up in no more lanes than are configured meanwhile', async () => {
    await using stage = await givenManual({ uses: 5 });
    for (const licenseKey of ['A', 'B', 'C', 'D', 'E', 'F', 'G']) {
      await stage.learn(licenseKey);
      await stage.change('usage', { licenseKey });
    }
    run(stage);
    expect(await stage.requested()).toHaveLength(4);
    stage.options = { ...stage.options, lanes: 3 };
    stage.sync.push.wake();
    expect(await stage.requested()).toHaveLength(4);
  });

  it('goes up in the place of what has been answered, before that is recorded, but not of ever more', async () => {
    await using stage = await givenManual({ uses: 5 });
    stage.options = { ...stage.options, lanes: 1 };
    for (const licenseKey of ['A', 'B', 'C']) {
      await stage.learn(licenseKey);
      await stage.change('usage', { licenseKey });
    }
    const recording = Promise.withResolvers<void>();
    const write = stage.writer.write.bind(stage.writer);
    vi.spyOn(stage.writer, 'write').mockImplementation(async (name, ...rest) => {
      if (name === 'recordAnswer') await recording.promise;
      return await write(name, ...rest);
    });
    run(stage);
    await (await stage.request()).answer(stage.saysOf('A'));
    await (await stage.request()).answer(stage.saysOf('B'));
    expect(await stage.requested()).toEqual([]);
    recording.resolve();
    expect(await stage.requested()).toEqual(['usage C']);
  });

  it('is not looked for in the store once for each that was delivered', async () => {
    await using stage = await givenManual({ uses: 5 });
    stage.options = { ...stage.options, lanes: 2 };
    const keys = ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'];
    for (const licenseKey of keys) {
      await stage.learn(licenseKey);
      await stage.change('usage', { licenseKey });
    }
    const due = vi.spyOn(stage.store.operations, 'due');
    run(stage);
    await stage.time.settle();
    for (const _ of keys) {
      const [first] = stage.arrived.splice(0, 1);
      await first?.answer(stage.saysOf(first.licenseKey));
    }
    expect(await stage.requested()).toEqual([]);
    // Once for all, and twice at the end to find nothing more.
    expect(due.mock.calls.length).toBeLessThanOrEqual(3);
  });

  it('of a product whose secret has been refused meanwhile stays, and holds up no other', async () => {
    await using stage = await givenManual({ uses: 5 });
    stage.options = { ...stage.options, lanes: 1 };
    for (const licenseKey of ['A', 'B']) {
      await stage.learn(licenseKey);
      await stage.change('usage', { licenseKey });
    }
    run(stage);
    const first = await stage.request();
    stage.sync.uplink.observe(no('unauthorized'), { owner: productKey, subject: 'B' });
    await first.answer(no('throttled'));
    expect(await stage.requested()).toEqual([]);
  });

  it('is warned of in the log when it was not delivered', async () => {
    for (const [outcome, warnings] of [
      [no('refused'), ['an operation was not delivered']],
      ['delivered', []],
    ] as const) {
      await using stage = await givenManual({ uses: 5 });
      const { request } = await givenFlying(stage);
      await request.answer(outcome === 'delivered' ? stage.says(6) : outcome);
      expect(stage.warnings).toEqual(warnings);
    }
  });

  it('is not called undelivered once it is taken as applied, though without proof', async () => {
    await using stage = await givenManual({ uses: 5 });
    stage.policy = { ...stage.policy, writers: 'many' };
    const use = await stage.record('usage');
    await stage.answer(await stage.send('counter'), lost);
    run(stage);
    await stage.passes(minute);
    await (await stage.request()).answer(stage.says(5));
    await (await stage.request()).answer(stage.says(6));
    expect([stage.stateOf(use), stage.warnings]).toEqual(['inferred', []]);
  });

  it('is read back after its fence, for which a plan that sends nothing costs no turn', async () => {
    await using stage = await givenManual({ uses: 5 });
    stage.options = { ...stage.options, rate: 0.5 };
    const use = await stage.record('usage');
    await stage.answer(await stage.send('counter'), lost);
    run(stage);
    await stage.passes(minute - 1);
    expect(await stage.requested()).toEqual([]);
    await stage.passes(1);
    const read = await stage.request();
    expect(read.kind).toBe('verify');
    await read.answer(stage.says(5));
    expect(stage.stateOf(use)).toBe('pending');
    await stage.passes(2 * second);
    expect(await stage.request()).toMatchObject({ kind: 'usage' });
  });

  it.each(['counter', 'state'] as const)(
    'is read back while nothing else may enter the %s lane of its key',
    async (lane) => {
      await using stage = await givenManual({ uses: 5 });
      await stage.record('usage');
      await stage.answer(await stage.send('counter'), lost);
      run(stage);
      await stage.passes(minute);
      const read = await stage.request();
      const entering = stage.lanes.enter(key, [lane], never);
      expect(await isOver(stage, entering)).toBe(false);
      await read.answer(stage.says(6));
      expect(await isOver(stage, entering)).toBe(true);
    },
  );

  it('that a caller read back meanwhile is sent at once', async () => {
    await using stage = await givenManual({ uses: 5 });
    await stage.record('usage');
    await stage.answer(await stage.send('counter'), lost);
    run(stage);
    stage.sync.uplink.pause();
    await stage.passes(minute);
    const read = stage.sync.reads.readNow(productKey, key);
    const request = await stage.request();
    stage.sync.uplink.resume();
    await request.answer(stage.says(5));
    await read;
    expect(await stage.requested()).toContain(`usage ${key}`);
  });

  it('is tried again after its wait, without being told of', async () => {
    await using stage = await givenManual();
    const { request } = await givenFlying(stage);
    await request.answer(no('throttled'));
    await stage.passes(499);
    expect(await stage.requested()).toEqual([]);
    await stage.passes(1);
    expect(await stage.requested()).toEqual([`usage ${key}`]);
  });

  it('waits while a person has paused everything, and goes up when it may go on', async () => {
    await using stage = await givenManual();
    stage.sync.uplink.pause();
    await stage.record('usage');
    run(stage);
    await stage.passes(hour);
    expect(await stage.requested()).toEqual([]);
    stage.sync.uplink.resume();
    expect(await stage.requested()).toEqual([`usage ${key}`]);
  });

  it('goes up when it may go on, although the full disk keeps that from being written down', async () => {
    await using stage = await givenManual();
    stage.sync.uplink.pause();
    await stage.record('usage');
    run(stage);
    await stage.time.settle();
    stage.fault = new StorageError('full', null);
    stage.sync.uplink.resume();
    await stage.time.settle();
    stage.fault = null;
    await stage.passes(second);
    expect(await stage.requested()).toEqual([`usage ${key}`]);
  });

  it('is no fault of the store where the end of a stop comes before room for its answer', async () => {
    await using stage = await givenManual();
    await stage.record('usage');
    const running = stage.sync.run(stage.ending.signal);
    const request = await stage.request();
    stage.fault = new StorageError('full', null);
    await request.answer(stage.says(6));
    stage.lifetime.abort();
    await stage.time.settle();
    stage.ending.abort();
    await expect(running).resolves.toBeUndefined();
  });

  it('goes up at once when a caller finds that its key is there again', async () => {
    await using stage = await givenManual({ uses: 5 });
    const use = await stage.record('usage');
    await stage.read(no('missing'));
    await stage.passes(minute);
    await stage.read(no('missing'));
    expect(stage.stateOf(use)).toBe('dead');
    stage.sync.uplink.observe(stage.says(5), { owner: productKey, subject: key });
    await stage.time.settle();
    run(stage);
    void stage.sync.reads.find([productKey], key, never, null);
    await (await stage.request()).answer(stage.says(5));
    expect(await stage.requested()).toEqual([`usage ${key}`]);
  });

  it('waits no longer than the outage for which it waits', async () => {
    await using stage = await givenManual({ uses: 5 });
    stage.policy = { ...stage.policy, backoff: { firstMs: hour, maxMs: hour } };
    const { request } = await givenFlying(stage);
    await request.answer(no('unreachable'));
    await stage.passes(minute);
    expect(await stage.requested()).toEqual([]);
    const reading = stage.sync.reads.read(productKey, 'OTHER', 'caller');
    await (await stage.request()).answer(stage.saysOf('OTHER'));
    await reading;
    expect(await stage.requested()).toEqual([`usage ${key}`]);
  });

  it('waits under a secret that was refused', async () => {
    await using stage = await givenManual();
    const { request } = await givenFlying(stage);
    await request.answer(no('unauthorized'));
    await stage.passes(10 * minute);
    expect(await stage.requested()).toEqual([]);
    stage.sync.uplink.retryCredentials();
    expect(await stage.requested()).toEqual([`usage ${key}`]);
  });

  it('waits unsent while its product is not configured, and goes up once it is put back', async () => {
    await using stage = await givenManual();
    const use = await stage.record('usage');
    const { options } = stage;
    stage.options = { ...options, productIds: ['other'] };
    run(stage);
    await stage.passes(10 * minute);
    expect(await stage.requested()).toEqual([]);
    expect(stage.operation(use).attempts).toBe(0);
    stage.options = options;
    stage.sync.uplink.retryCredentials();
    expect(await stage.requested()).toEqual([`usage ${key}`]);
  });

  it('is not sent on a read that was refused for the secret', async () => {
    await using stage = await givenManual();
    await stage.read(stage.says(5, { enabled: false }));
    await stage.record('enable');
    run(stage);
    const read = await stage.request();
    expect(read.kind).toBe('verify');
    await read.answer(no('unauthorized'));
    expect(await stage.requested()).toEqual([]);
  });

  it('keeps its answer until the full disk has room for it', async () => {
    await using stage = await givenManual({ uses: 5 });
    const { use, request } = await givenFlying(stage);
    stage.fault = new StorageError('full', null);
    await request.answer(stage.says(6));
    await stage.passes(minute);
    expect(stage.stateOf(use)).toBe('in_flight');
    stage.fault = null;
    await stage.passes(second);
    expect(stage.stateOf(use)).toBe('delivered');
  });

  it('whose answer the full disk kept back takes nothing back of what was answered to a disable meanwhile', async () => {
    await using stage = await givenManual({ uses: 5 });
    const { use, request } = await givenFlying(stage);
    stage.fault = new StorageError('full', null);
    await request.answer(stage.says(6));
    stage.fault = null;
    await stage.record('disable');
    stage.sync.push.wake();
    await (await stage.request()).answer(stage.says(6, { enabled: false }));
    expect(stage.stateOf(use)).toBe('in_flight');
    await stage.passes(second);
    expect(stage.stateOf(use)).toBe('delivered');
    expect(stage.observation.local).toEqual({ uses: 6, enabled: false, pending: 0 });
  });

  it('a disable whose answer the full disk kept back calls no use that was counted meanwhile another writer’s', async () => {
    await using stage = await givenManual({ uses: 5 });
    await stage.record('disable');
    run(stage);
    const disable = await stage.request();
    stage.fault = new StorageError('full', null);
    await disable.answer(stage.says(5, { enabled: false }));
    stage.fault = null;
    await stage.record('usage');
    stage.sync.push.wake();
    await (await stage.request()).answer(stage.says(6, { enabled: false }));
    await stage.passes(second);
    expect(stage.observation.local).toEqual({ uses: 6, enabled: false, pending: 0 });
    expect(stage.observation.manyWriters).toBe(false);
  });

  it('that the full disk keeps from being sent costs nobody a turn', async () => {
    await using stage = await givenManual({ uses: 5 });
    stage.options = { ...stage.options, rate: 0.5 };
    await stage.record('usage');
    stage.fault = new StorageError('full', null);
    run(stage);
    await stage.time.settle();
    stage.fault = null;
    await stage.passes(second);
    expect(await stage.requested()).toEqual([`usage ${key}`]);
  });

  it('is not sent after a wait for room on a full disk, when the upstream has asked for quiet meanwhile', async () => {
    await using stage = await givenManual({ uses: 5 });
    await stage.record('usage');
    stage.fault = new StorageError('full', null);
    run(stage);
    await stage.passes(second);
    stage.sync.uplink.observe(no('throttled', minute), { owner: productKey, subject: key });
    stage.fault = null;
    await stage.passes(30 * second);
    expect(await stage.requested()).toEqual([]);
    await stage.passes(minute);
    expect(await stage.requested()).toEqual([`usage ${key}`]);
  });

  it('tells of a count that another writer has changed', async () => {
    await using stage = await givenManual({ uses: 5 });
    const { use, request } = await givenFlying(stage);
    await request.answer(stage.says(9));
    expect(stage.unexpected).toEqual([{ operation: use, licenseKey: key, expected: 6, got: 9 }]);
  });
});

describe('carrying up', () => {
  it('ends when it is told to, once what is in flight has been answered', async () => {
    await using stage = await givenManual({ uses: 5 });
    const { use, request, ending, ended } = await givenFlying(stage);
    ending.abort();
    expect(await isOver(stage, ended)).toBe(false);
    await request.answer(stage.says(6));
    expect(await isOver(stage, ended)).toBe(true);
    expect(stage.stateOf(use)).toBe('delivered');
  });

  it('keeps an answer for which the full disk has no room also when it is told to end', async () => {
    await using stage = await givenManual({ uses: 5 });
    const { use, request, ending, ended } = await givenFlying(stage);
    stage.fault = new StorageError('full', null);
    await request.answer(stage.says(6));
    ending.abort();
    await stage.passes(minute);
    stage.fault = null;
    await stage.passes(minute);
    expect(stage.stateOf(use)).toBe('delivered');
    expect(await isOver(stage, ended)).toBe(true);
  });

  it('ends without a fault where an operation has not had its turn', async () => {
    await using stage = await givenManual();
    using _reading = await stage.lanes.enter(key, ['counter', 'state'], never);
    const use = await stage.record('usage');
    const { ending, ended } = run(stage);
    await stage.time.settle();
    ending.abort(new Error('told to end'));
    expect(await ended).toBe(undefined);
    expect(stage.stateOf(use)).toBe('pending');
  });

  it('ends with a store that failed, and leaves it alone from then on', async () => {
    await using stage = await givenManual();
    stage.fault = new StorageError('failed', null);
    await stage.record('usage');
    expect(await run(stage).ended).toBe('StorageError: the storage failed');
    const reads = vi.spyOn(stage.store.operations, 'due');
    await stage.time.settle();
    expect(reads).not.toHaveBeenCalled();
  });
});

describe('a caller who waits for an operation', () => {
  const wait = (stage: ManualStage, id: string, untilFailure = false, signal = never): Promise<void> =>
    stage.sync.push.settled(id, { waitMs: 10 * second, untilFailure }, signal);

  it('waits until it is delivered, and no longer', async () => {
    await using stage = await givenManual({ uses: 5 });
    const { use, request } = await givenFlying(stage);
    const waiting = wait(stage, use);
    expect(await isOver(stage, waiting)).toBe(false);
    await request.answer(stage.says(6));
    expect(await isOver(stage, waiting)).toBe(true);
    expect(await isOver(stage, wait(stage, use))).toBe(true);
  });

  it('waits for as long as was asked', async () => {
    await using stage = await givenManual();
    const { use } = await givenFlying(stage);
    const waiting = wait(stage, use);
    await stage.passes(10 * second - 1);
    expect(await isOver(stage, waiting)).toBe(false);
    await stage.passes(1);
    expect(await isOver(stage, waiting)).toBe(true);
  });

  it('waits on after an attempt that failed, unless the failure is what matters', async () => {
    for (const outcome of [no('unreachable'), no('unauthorized'), lost]) {
      await using stage = await givenManual();
      const { use, request } = await givenFlying(stage);
      const [patient, impatient] = [wait(stage, use), wait(stage, use, true)];
      expect(await isOver(stage, impatient)).toBe(false);
      await request.answer(outcome);
      expect([await isOver(stage, patient), await isOver(stage, impatient)]).toEqual([false, true]);
    }
  });

  it('who minds failure does not wait for an upstream that is away', async () => {
    await using stage = await givenManual();
    stage.sync.uplink.pause();
    const use = await stage.record('usage');
    expect(await isOver(stage, wait(stage, use, true))).toBe(true);
    expect(await isOver(stage, wait(stage, use))).toBe(false);
  });

  it('does not wait for what only a person can decide', async () => {
    await using stage = await givenManual({ uses: 5 });
    stage.policy = { ...stage.policy, writers: 'many', onDoubt: 'hold' };
    const use = await stage.record('usage');
    await stage.answer(await stage.send('counter'), lost);
    stage.pass(minute);
    await stage.read(stage.says(6));
    expect(stage.stateOf(use)).toBe('held');
    expect(await isOver(stage, wait(stage, use))).toBe(true);
  });

  it('is let go when it leaves', async () => {
    await using stage = await givenManual();
    const { use } = await givenFlying(stage);
    const leaving = new AbortController();
    const waiting = wait(stage, use, false, leaving.signal);
    expect(await isOver(stage, waiting)).toBe(false);
    leaving.abort();
    expect(await isOver(stage, waiting)).toBe(true);
  });

  it('does not wait for what is not there', async () => {
    await using stage = await givenManual();
    expect(await isOver(stage, wait(stage, 'none'))).toBe(true);
  });
});
