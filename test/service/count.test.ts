import { describe, expect, it } from 'vitest';
import {
  AgentHarness,
  day,
  createAgent,
  hour,
  key,
  lost,
  minute,
  no,
  second,
} from '../support/harness/service-harness.ts';

const sent = { justRead: false };

describe('a use on an agent', () => {
  it('a use is visible at once, and is sent on the last known count', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    expect(agent.local).toEqual({ uses: 6, enabled: true, pending: 1 });
    expect(await agent.send('counter')).toMatchObject({
      id: use,
      attempts: 1,
      progress: {
        state: 'in_flight',
        maybeApplied: false,
        unanswered: false,
        baseUses: 5,
        sentAt: agent.monotonic,
      },
    });
  });

  it('a use is delivered by a successful response, whose count is the new base', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    const { unexpected } = await agent.answer(await agent.send('counter'), agent.says(6));
    expect(unexpected).toBeNull();
    expect(agent.stateOf(use)).toBe('delivered');
    expect(agent.snapshot.license.uses).toBe(6);
    expect(agent.local).toEqual({ uses: 6, enabled: true, pending: 0 });
  });

  it('a use keeps its place in the queue: the next use waits for it, and is sent on the new count', async () => {
    await using agent = await createAgent({ uses: 5 });
    const first = await agent.record('usage');
    const second_ = await agent.record('decrease');
    const flying = await agent.send('counter');
    expect(flying.id).toBe(first);
    expect(await agent.plan('counter')).toEqual({ step: 'none' });
    await agent.answer(flying, agent.says(6));
    expect(await agent.send('counter')).toMatchObject({ id: second_, progress: { baseUses: 6 } });
  });

  it('a use of several is one operation, and is expected to raise the count by so many', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage', 4);
    await agent.record('decrease');
    await agent.record('usage', 2);
    expect(agent.local).toEqual({ uses: 10, enabled: true, pending: 3 });
    const sentUse = await agent.send('counter');
    expect(sentUse).toMatchObject({ id: use, amount: 4, progress: { baseUses: 5 } });
    const { unexpected } = await agent.answer(sentUse, agent.says(9));
    expect(unexpected).toBeNull();
    expect(agent.local).toEqual({ uses: 10, enabled: true, pending: 2 });
  });

  it.each([
    { read: 5, state: 'pending', unexpected: null },
    { read: 9, state: 'delivered', unexpected: null },
    { read: 6, state: 'inferred', unexpected: { expected: 5, got: 6 } },
  ])(
    'a use of 4 whose answer is lost is decided by the count: on 5 uses, a read of $read makes it $state',
    async ({ read, state, unexpected }) => {
      await using agent = await createAgent({ uses: 5 });
      const use = await agent.record('usage', 4);
      await agent.answer(await agent.send('counter'), lost);
      expect(agent.local.uses).toBe(9);
      agent.pass(minute);
      expect((await agent.read(agent.says(read))).unexpected).toEqual(unexpected);
      expect(agent.stateOf(use)).toBe(state);
    },
  );

  it('a use of several that a person confirms moves the known count by so many', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage', 4);
    await agent.answer(await agent.send('counter'), no('refused'));
    expect(agent.stateOf(use)).toBe('dead');
    await agent.writer.write('decideOperation', { operationId: use, decision: 'confirm' });
    expect(agent.snapshot.license.uses).toBe(9);
  });

  it('a use of an unknown key or of a key of another product is refused', async () => {
    await using agent = await createAgent();
    const unknown = await agent.change('usage', { licenseKey: 'OTHER' });
    expect(unknown).toMatchObject({ ok: false, problem: { code: 'upstream_unreachable' } });
    const command = { productIds: ['other'], licenseKey: 'KEY-1', trigger: 'usage' } as const;
    const { freshness, maxPending } = agent;
    const foreign = await agent.writer.write('queueChange', { ...command, freshness, maxPending });
    expect(foreign).toMatchObject({ ok: false, problem: { code: 'license_not_found' } });
  });

  it('a use is refused if the outbox is full, held operations included', async () => {
    await using agent = await createAgent({}, { writers: 'many', onUncertain: 'hold' });
    agent.maxPending = 1;
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(6));
    expect(agent.stateOf(use)).toBe('held');
    expect(await agent.change('usage')).toMatchObject({ ok: false, problem: { code: 'storage_full' } });
    expect(agent.local.pending).toBe(1);
  });

  it('a use is refused if the outbox is full, operations in flight included', async () => {
    await using agent = await createAgent();
    agent.maxPending = 2;
    await agent.record('usage');
    await agent.send('counter');
    expect(await agent.change('usage')).toMatchObject({ ok: true });
    expect(await agent.change('usage')).toMatchObject({ ok: false, problem: { code: 'storage_full' } });
  });

  it('a use of an expired key is accepted only if the key was enabled when last seen', async () => {
    await using agent = await createAgent();
    await using refused = await createAgent({ enabled: false });
    agent.pass(15 * 24 * hour);
    refused.pass(15 * 24 * hour);
    expect(await agent.change('usage')).toMatchObject({ ok: true });
    expect(await refused.change('usage')).toMatchObject({ ok: false, problem: { code: 'verdict_expired' } });
  });

  it('a use at an agent below is accepted whatever is known of the key, because its caller was perhaps answered', async () => {
    await using agent = await createAgent({ enabled: false });
    agent.pass(15 * 24 * hour);
    const below = { id: 'u', createdAt: agent.now, epoch: null, isRepeat: false, seenRevision: null };
    expect(await agent.change('usage', { below })).toMatchObject({ ok: true, value: { operationId: 'u' } });
  });

  it('a use of a disabled key counts', async () => {
    await using agent = await createAgent({ uses: 5, enabled: false });
    await agent.record('usage');
    expect(agent.local).toEqual({ uses: 6, enabled: false, pending: 1 });
  });
});

describe('a count from before the start', () => {
  it('a count from before the start is not a base: the key is read first', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.restart();
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
    await agent.read(agent.says(5));
    expect(await agent.send('counter', { justRead: true })).toMatchObject({
      id: use,
      progress: { baseUses: 5 },
    });
  });

  it('a count that moved without explanation makes earlier operations uncertain, but not those recorded since', async () => {
    await using agent = await createAgent({ uses: 5 });
    const earlier = [await agent.record('usage'), await agent.record('usage')];
    await agent.restart();
    const since = await agent.record('usage');
    await agent.read(agent.says(6));
    expect([...earlier, since].map((id) => agent.stateOf(id))).toEqual(['uncertain', 'uncertain', 'pending']);
    expect(agent.local.pending).toBe(3);
    expect(agent.dueIn('counter')).toBe(minute);
    // A read before that reconciles nothing, because the request may still arrive.
    agent.pass(minute - second);
    await agent.read(agent.says(6));
    expect([...earlier, since].map((id) => agent.stateOf(id))).toEqual(['uncertain', 'uncertain', 'pending']);
    agent.pass(second);
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
    await agent.read(agent.says(6));
    expect([...earlier, since].map((id) => agent.stateOf(id))).toEqual(['inferred', 'pending', 'pending']);
    expect(await agent.send('counter')).toMatchObject({ id: earlier[1], progress: { baseUses: 6 } });
  });

  it('a count that no operation of this agent explains shows many writers, and the queue is sent', async () => {
    await using agent = await createAgent({ uses: 5 });
    const earlier = await agent.record('usage');
    await agent.restart();
    const { unexpected } = await agent.read(agent.says(9));
    expect(unexpected).toEqual({ expected: 5, got: 9 });
    expect(agent.stateOf(earlier)).toBe('pending');
    expect(agent.snapshot).toMatchObject({ manyWriters: true, license: { uses: 9 } });
    await agent.answer(await agent.send('counter'), agent.says(10));
    expect(agent.stateOf(earlier)).toBe('inferred');
  });

  it('a count that nothing explains shows another writer, and neither uncertain nor queued operations are certain later', async () => {
    await using agent = await createAgent({ uses: 5 });
    const maybeApplied = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    const waiting = await agent.record('usage');
    await agent.restart();
    agent.pass(minute);
    const { unexpected } = await agent.read(agent.says(9));
    expect(unexpected).toEqual({ expected: 5, got: 9 });
    expect(agent.stateOf(maybeApplied)).toBe('inferred');
    await agent.answer(await agent.send('counter'), agent.says(10));
    expect(agent.stateOf(waiting)).toBe('inferred');
  });

  it('a count that others may have moved ends no operation that was never sent', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'many' });
    const queue = [await agent.record('usage'), await agent.record('usage')];
    await agent.restart();
    await agent.read(agent.says(6));
    for (const [index, id] of queue.entries()) {
      await agent.answer(await agent.send('counter'), agent.says(7 + index));
      expect(agent.stateOf(id)).toBe('inferred');
    }
    expect(agent.local).toMatchObject({ uses: 8, pending: 0 });
  });

  it('a read before the reconcile delay does not replace the first read after it', async () => {
    await using agent = await createAgent({ uses: 5 });
    const flying = await agent.record('usage');
    await agent.send('counter');
    const behind = await agent.record('usage');
    await agent.restart();
    await agent.read(agent.says(7));
    agent.pass(minute);
    const { unexpected } = await agent.read(agent.says(7));
    expect(unexpected).toBeNull();
    expect([flying, behind].map((id) => agent.stateOf(id))).toEqual(['uncertain', 'uncertain']);
  });

  it('the response to a change of state does not make a count from before the start a base', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.record('disable');
    await agent.restart();
    await agent.answer(await agent.send('state'), agent.says(6, { enabled: false }));
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
    await agent.read(agent.says(6, { enabled: false }));
    expect(agent.stateOf(use)).toBe('uncertain');
  });
});

describe('operations in flight when the process ended', () => {
  it('an operation in flight at a restart is uncertain, and is read back after the reconcile delay', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.send('counter');
    await agent.restart();
    expect(agent.stateOf(use)).toBe('uncertain');
    expect(agent.dueIn('counter')).toBe(minute);
    expect(await agent.plan('counter')).toEqual({ step: 'none' });
    agent.pass(minute);
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
    await agent.read(agent.says(6));
    expect(agent.stateOf(use)).toBe('delivered');
    expect(agent.local).toEqual({ uses: 6, enabled: true, pending: 0 });
  });

  it('a restart during the reconcile delay starts the whole delay again', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    // The next process may count its elapsed time from another start, so the rest of the reconcile delay is unknown.
    agent.monotonic += 2 * hour;
    await agent.restart();
    expect(agent.dueIn('counter')).toBe(minute);
  });
});

describe('a use whose response was lost', () => {
  it('a use whose response was lost waits for the reconcile delay, and no earlier read reconciles it', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    expect(agent.stateOf(use)).toBe('uncertain');
    agent.pass(minute - 1);
    expect(await agent.plan('counter')).toEqual({ step: 'none' });
    await agent.read(agent.says(6));
    expect(agent.stateOf(use)).toBe('uncertain');
    expect(agent.snapshot.license.uses).toBe(5);
    expect(agent.local).toEqual({ uses: 6, enabled: true, pending: 1 });
    agent.pass(1);
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
  });

  it('a use is not reconciled by a read that was sent before the end of the reconcile delay and answered after it', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute + second);
    await agent.read(agent.says(5), { sentAt: agent.monotonic - second - 1 });
    expect(agent.stateOf(use)).toBe('uncertain');
  });

  it('a use keeps its reconcile delay if a read fails', async () => {
    await using agent = await createAgent({ uses: 5 }, { goneMs: second });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    for (const outcome of [no('unreachable'), lost, no('missing'), no('throttled')]) {
      await agent.read(outcome);
      expect(agent.dueIn('counter')).toBe(minute);
    }
  });

  it('a use whose response was lost waits as long as the upstream asks if that is longer', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), { ...lost, retryAfterMs: hour });
    expect(agent.dueIn('counter')).toBe(hour);
  });

  it('with a single writer, a lost use was applied if the count has moved by one', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(6));
    expect(agent.stateOf(use)).toBe('delivered');
  });

  it('with a single writer, a lost use is sent again if the count has not moved, and ends delivered', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(5));
    expect(agent.operation(use).progress).toEqual({
      state: 'pending',
      maybeApplied: false,
      unanswered: false,
    });
    await agent.answer(await agent.send('counter', sent), agent.says(6));
    expect(agent.operation(use)).toMatchObject({ attempts: 2, progress: { state: 'delivered' } });
  });

  it('with many writers, a lost use is sent again if the count has not moved, and ends inferred', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'many' });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(5));
    expect(agent.operation(use).progress).toEqual({
      state: 'pending',
      maybeApplied: true,
      unanswered: false,
    });
    await agent.answer(await agent.send('counter'), agent.says(6));
    expect(agent.stateOf(use)).toBe('inferred');
    expect(agent.local).toEqual({ uses: 6, enabled: true, pending: 0 });
  });

  it('with many writers, a lost use is inferred if the count has moved by one', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'many' });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    const { unexpected } = await agent.read(agent.says(6));
    expect(unexpected).toBeNull();
    expect(agent.stateOf(use)).toBe('inferred');
  });

  it('a lost use is inferred if the count has moved by another number, and both numbers are reported', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    const { unexpected } = await agent.read(agent.says(8));
    expect(unexpected).toEqual({ expected: 5, got: 8 });
    expect(agent.stateOf(use)).toBe('inferred');
    expect(agent.snapshot.manyWriters).toBe(true);
  });

  it('a lost use is held for a person if that is configured, and the next operation goes on', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'many', onUncertain: 'hold' });
    const use = await agent.record('usage');
    const next = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(6));
    expect(agent.stateOf(use)).toBe('held');
    expect(agent.operation(use).nextAt).toBeNull();
    expect(agent.local).toEqual({ uses: 7, enabled: true, pending: 2 });
    expect(await agent.send('counter')).toMatchObject({ id: next, progress: { baseUses: 6 } });
  });

  it('a held use shows why it is held, not the result of an earlier read', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'many', onUncertain: 'hold' });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(no('rejected'));
    expect(agent.operation(use).lastError).toBe(no('rejected').detail);
    agent.pass(minute);
    await agent.read(agent.says(6));
    expect(agent.stateOf(use)).toBe('held');
    expect(agent.operation(use).lastError).toMatch(/^it may have been applied: another writer, /);
  });

  it('a lost use is not held if the count has not moved: it is sent again', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'many', onUncertain: 'hold' });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(5));
    expect(agent.operation(use).progress).toEqual({
      state: 'pending',
      maybeApplied: true,
      unanswered: false,
    });
  });

  it('a lost use is reconciled together with the other uncertain uses in their order, and none of them is certain', async () => {
    await using agent = await createAgent({ uses: 5 });
    const uses = [];
    for (let index = 0; index < 4; index += 1) uses.push(await agent.record('usage'));
    await agent.send('counter');
    await agent.restart();
    agent.pass(minute);
    // Two more than the operation in flight have arrived: this store does not know that history.
    await agent.read(agent.says(8));
    expect(uses.map((id) => agent.stateOf(id))).toEqual(Array(4).fill('uncertain'));
    agent.pass(minute);
    await agent.read(agent.says(8));
    expect(uses.map((id) => agent.stateOf(id))).toEqual(['inferred', 'inferred', 'inferred', 'pending']);
    expect(agent.local).toEqual({ uses: 9, enabled: true, pending: 1 });
  });

  it('a lost use is not counted twice in the response to a change of state', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await agent.record('disable');
    await agent.answer(await agent.send('state'), agent.says(6, { enabled: false }));
    expect(agent.local).toEqual({ uses: 6, enabled: false, pending: 1 });
  });
});

describe('a use that was certainly not applied', () => {
  it('a use waits with backoff while the upstream cannot be reached, and is sent when the upstream is back', async () => {
    await using agent = await createAgent();
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('unreachable'));
    expect(agent.operation(use)).toMatchObject({ failures: 1, outage: true, lastError: 'no: unreachable' });
    expect(agent.dueIn('counter')).toBe(500);
    agent.pass(500);
    await agent.answer(await agent.send('counter'), no('unreachable'));
    expect(agent.dueIn('counter')).toBe(second);
    await agent.writer.write('endOutage', {});
    expect(agent.dueIn('counter')).toBe(0);
  });

  it('a use starts a new series of failures after the read that it waited for', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.restart();
    await agent.read(no('unreachable'));
    expect(agent.operation(use).failures).toBe(1);
    agent.pass(second);
    await agent.read(agent.says(5));
    expect(agent.operation(use).failures).toBe(0);
  });

  it('a use waits if the upstream asks for it, and the end of an outage does not shorten the wait', async () => {
    await using agent = await createAgent();
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('throttled', hour));
    expect(agent.dueIn('counter')).toBe(hour);
    await agent.writer.write('endOutage', {});
    expect(agent.dueIn('counter')).toBe(hour);
  });

  it('a use waits as after any failure if its credential is rejected, perhaps only for this key', async () => {
    await using agent = await createAgent();
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('unauthorized'));
    expect(agent.stateOf(use)).toBe('pending');
    expect(agent.dueIn('counter')).toBe(500);
  });

  it('a use that the upstream will never accept is dead, and the reason is stored', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    const next = await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('refused'));
    expect(agent.operation(use)).toMatchObject({
      lastError: 'no: refused',
      progress: { state: 'dead', cause: 'refused' },
    });
    expect(agent.local).toEqual({ uses: 6, enabled: true, pending: 1 });
    expect(await agent.send('counter')).toMatchObject({ id: next });
  });

  it('an uncertain use stays uncertain when a later attempt was certainly not applied', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'many' });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(5));
    await agent.answer(await agent.send('counter'), no('unreachable'));
    expect(agent.operation(use).progress).toEqual({
      state: 'pending',
      maybeApplied: true,
      unanswered: false,
    });
  });
});

describe('a key that the upstream no longer knows', () => {
  it('a missing key keeps its operations until two reads, far enough apart, return 404; then they are dead', async () => {
    await using agent = await createAgent();
    const use = await agent.record('usage');
    const disable = await agent.record('disable');
    await agent.read(no('missing'));
    expect([agent.stateOf(use), agent.stateOf(disable)]).toEqual(['pending', 'pending']);
    expect(agent.snapshot.gone).toBe(false);
    agent.pass(minute);
    await agent.read(no('missing'));
    expect([agent.stateOf(use), agent.stateOf(disable)]).toEqual(['dead', 'dead']);
    expect(agent.snapshot.gone).toBe(true);
    expect(await agent.change('usage')).toMatchObject({ ok: false, problem: { code: 'license_not_found' } });
  });

  it.each([
    ['jumps ahead by two days', 2 * day],
    ['was ahead at the first one, and is set right', -60 * day],
  ])(
    'a missing key is gone after the time that really passed between two reads, even if the clock %s',
    async (_, byMs) => {
      await using agent = await createAgent({}, { goneMs: day });
      await agent.read(no('missing'));
      agent.now += byMs;
      agent.pass(hour);
      await agent.read(no('missing'));
      expect(agent.snapshot.gone).toBe(false);
      agent.pass(23 * hour);
      await agent.read(no('missing'));
      expect(agent.snapshot.gone).toBe(true);
    },
  );

  it('a key is not gone because changes get a 404, however often: the next step is a read', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('decrease');
    const use = await agent.record('usage');
    const disable = await agent.record('disable');
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await agent.answer(await agent.send('counter', { justRead: attempt > 0 }), no('missing'));
      agent.pass(hour);
      expect(await agent.plan('counter')).toEqual({ step: 'read' });
    }
    await agent.read(agent.says(5));
    expect([agent.stateOf(use), agent.stateOf(disable), agent.snapshot.gone]).toEqual([
      'pending',
      'pending',
      false,
    ]);
  });

  it('a key is not gone while another known key gets a 404 too: then a gateway answers', async () => {
    await using agent = await createAgent();
    const use = await agent.record('usage');
    for (let hours = 0; hours < 48; hours += 1) {
      await agent.read(no('missing'), { isMissingConfirmed: false });
      agent.pass(hour);
    }
    expect(agent.snapshot).toMatchObject({ missingSince: null, gone: false });
    expect(agent.stateOf(use)).toBe('pending');
  });

  it('a gone key is still read at long intervals, and reopens its dead operations when it returns', async () => {
    await using agent = await createAgent({ uses: 5 }, { goneMs: 24 * hour });
    const use = await agent.record('usage');
    const disable = await agent.record('disable');
    await agent.answer(await agent.send('state'), no('refused'));
    await agent.read(no('missing'));
    agent.pass(24 * hour);
    await agent.read(no('missing'));
    expect([agent.stateOf(use), agent.stateOf(disable)]).toEqual(['dead', 'dead']);
    expect((agent.snapshot.refreshAt ?? 0) - agent.monotonic).toBe(24 * hour);
    await agent.read(agent.says(5));
    expect([agent.stateOf(use), agent.stateOf(disable)]).toEqual(['pending', 'dead']);
    expect(agent.snapshot.gone).toBe(false);
    expect(agent.local).toMatchObject({ uses: 6, pending: 1 });
    await agent.answer(await agent.send('counter'), agent.says(6));
    expect(agent.stateOf(use)).toBe('delivered');
  });

  it('a key that returns sends a reopened change of state, too', async () => {
    await using agent = await createAgent({ uses: 5 });
    const disable = await agent.record('disable');
    await agent.read(no('missing'));
    agent.pass(minute);
    await agent.read(no('missing'));
    expect(agent.stateOf(disable)).toBe('dead');
    await agent.read(agent.says(5));
    expect([agent.stateOf(disable), agent.dueIn('state')]).toEqual(['pending', 0]);
    await agent.answer(await agent.send('state'), agent.says(5, { enabled: false }));
    expect(agent.stateOf(disable)).toBe('delivered');
  });

  it('reopened operations come before an operation that a person has retried meanwhile', async () => {
    await using agent = await createAgent({ uses: 5 });
    const first = await agent.record('usage');
    const other = await agent.record('usage');
    await agent.read(no('missing'));
    agent.pass(minute);
    await agent.read(no('missing'));
    await agent.writer.write('decideOperation', { operationId: other, decision: 'retry' });
    await agent.read(agent.says(5));
    expect(agent.store.operations.queue(key, 'counter').map(({ id }) => id)).toEqual([first, other]);
    expect((await agent.send('counter')).id).toBe(first);
  });

  it('operations of a gone key that may have been applied are held for a person', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(no('missing'));
    agent.pass(minute);
    await agent.read(no('missing'));
    expect(agent.stateOf(use)).toBe('held');
    expect(agent.operation(use).lastError).toMatch(/does not know this license key.*may have been applied/);
    await agent.read(agent.says(6));
    expect(agent.stateOf(use)).toBe('held');
  });

  it('a key that returns shows no other writer if its count contains operations that may have been applied', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(no('missing'));
    agent.pass(minute);
    await agent.read(no('missing'));
    expect(agent.snapshot.gone).toBe(true);
    expect(await agent.read(agent.says(6))).toEqual({ unexpected: null });
    expect(agent.snapshot.manyWriters).toBe(false);
  });

  it('the read after a 404 to a change shows another writer', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('missing'));
    agent.pass(minute);
    expect(await agent.read(agent.says(9))).toEqual({ unexpected: { expected: 5, got: 9 } });
  });

  it('a key is not gone if it was found between two 404s', async () => {
    await using agent = await createAgent();
    await agent.record('usage');
    await agent.read(no('missing'));
    await agent.read(agent.says(5));
    agent.pass(minute);
    await agent.read(no('missing'));
    expect(agent.snapshot.gone).toBe(false);
  });

  it('a key is gone only after 404s', async () => {
    await using agent = await createAgent();
    await agent.read(no('missing'));
    agent.pass(minute);
    const { snapshot } = agent;
    for (const outcome of [no('unreachable'), no('unauthorized'), no('throttled'), no('rejected'), lost]) {
      await agent.read(outcome);
      expect(agent.snapshot).toEqual({ ...snapshot, refreshAt: agent.snapshot.refreshAt });
    }
  });
});

describe('a decrease', () => {
  it('a decrease is sent if there is a use to undo', async () => {
    await using agent = await createAgent({ uses: 1 });
    const undo = await agent.record('decrease');
    expect(agent.local.uses).toBe(0);
    await agent.answer(await agent.send('counter'), agent.says(0));
    expect(agent.stateOf(undo)).toBe('delivered');
  });

  it('a decrease whose response was lost was applied if the count has gone down by one', async () => {
    await using agent = await createAgent({ uses: 5 });
    const undo = await agent.record('decrease');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    const { unexpected } = await agent.read(agent.says(4));
    expect([unexpected, agent.stateOf(undo)]).toEqual([null, 'delivered']);
  });

  it('a decrease is not sent at 0: the key is read first, and a count of 0 reconciles the decrease', async () => {
    await using agent = await createAgent({ uses: 0 });
    const undo = await agent.record('decrease');
    expect(agent.local).toEqual({ uses: 0, enabled: true, pending: 1 });
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
    await agent.read(agent.says(0));
    expect(agent.operation(undo)).toMatchObject({ attempts: 0, progress: { state: 'delivered' } });
  });

  it('a decrease is sent if the read before it shows a use', async () => {
    await using agent = await createAgent({ uses: 0 });
    const undo = await agent.record('decrease');
    await agent.read(agent.says(1));
    expect(await agent.send('counter', { justRead: true })).toMatchObject({
      id: undo,
      progress: { baseUses: 1 },
    });
  });

  it('a decrease is not reconciled by a read that was sent before it was recorded', async () => {
    await using agent = await createAgent({ uses: 0 });
    const sentAt = agent.monotonic;
    agent.pass(second);
    const undo = await agent.record('decrease');
    await agent.read(agent.says(0), { sentAt });
    expect(agent.stateOf(undo)).toBe('pending');
    expect(await agent.plan('counter', { justRead: true })).toEqual({ step: 'read' });
  });

  it('a decrease is not sent on a count below 0 from an upstream without a floor', async () => {
    await using agent = await createAgent({ uses: -2 });
    const undo = await agent.record('decrease');
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
    await agent.read(agent.says(-2));
    expect(agent.stateOf(undo)).toBe('delivered');
  });

  it('a decrease behind a use is reconciled in its order', async () => {
    await using agent = await createAgent({ uses: 0 });
    const use = await agent.record('usage');
    const undo = await agent.record('decrease');
    await agent.read(agent.says(0));
    expect([agent.stateOf(use), agent.stateOf(undo)]).toEqual(['pending', 'pending']);
    await agent.answer(await agent.send('counter'), agent.says(1));
    await agent.answer(await agent.send('counter'), agent.says(0));
    expect([agent.stateOf(use), agent.stateOf(undo)]).toEqual(['delivered', 'delivered']);
  });
});

describe('another writer', () => {
  it('another writer is detected by a response whose count moved by more than one, and is not forgotten', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    const { unexpected } = await agent.answer(await agent.send('counter'), agent.says(7));
    expect(unexpected).toEqual({ expected: 6, got: 7 });
    expect(agent.stateOf(use)).toBe('delivered');
    expect(agent.snapshot).toMatchObject({ manyWriters: true, license: { uses: 7 } });
    await agent.restart();
    await agent.read(agent.says(7));
    expect(agent.snapshot.manyWriters).toBe(true);
  });

  it('another writer is detected by the response to a decrease', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('decrease');
    const { unexpected } = await agent.answer(await agent.send('counter'), agent.says(9));
    expect(unexpected).toEqual({ expected: 4, got: 9 });
  });

  it('another writer is detected by a read that no operation explains', async () => {
    await using agent = await createAgent({ uses: 5 });
    const { unexpected } = await agent.read(agent.says(4));
    expect(unexpected).toEqual({ expected: 5, got: 4 });
    expect(agent.snapshot).toMatchObject({ manyWriters: true, license: { uses: 4 } });
  });

  it('another writer is detected by the response to a change of state', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('disable');
    const { unexpected } = await agent.answer(await agent.send('state'), agent.says(6, { enabled: false }));
    expect(unexpected).toEqual({ expected: 5, got: 6 });
    expect(agent.snapshot).toMatchObject({ manyWriters: true, license: { uses: 6, enabled: false } });
  });

  it('another writer makes later uncertain operations of the key inferred, whatever is configured', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.read(agent.says(4));
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(5));
    expect(agent.stateOf(use)).toBe('inferred');
  });
});

describe('a read that a cache answered', () => {
  it('a cached read reconciles nothing: the key is read again', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.cacheSays(5, 30 * second));
    expect(agent.stateOf(use)).toBe('uncertain');
    expect(agent.dueIn('counter')).toBeGreaterThan(0);
    expect(agent.operation(use).lastError).toBe('a cache answered, not the upstream');
    agent.pass(minute);
    await agent.read(agent.says(6));
    expect(agent.stateOf(use)).toBe('delivered');
  });

  it('a cached read is no base: after a start the key is read again before anything is sent', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.restart();
    await agent.read(agent.cacheSays(5, second));
    agent.pass(minute);
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
    await agent.read(agent.says(5));
    expect(await agent.plan('counter')).toMatchObject({
      step: 'send',
      operation: { progress: { baseUses: 5 } },
    });
  });

  it('a cached read makes an unknown key known with the age of the cached response, but is no base', async () => {
    await using agent = new AgentHarness();
    await agent.start();
    await agent.read(agent.cacheSays(5, hour));
    expect(agent.snapshot).toMatchObject({ confirmedAt: agent.now - hour, local: { uses: 5 } });
    await agent.record('usage');
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
  });

  it('the next refresh after a cached read comes at the usual time, or earlier if it had nothing new', async () => {
    await using agent = await createAgent();
    agent.pass(hour);
    const refreshIn = (): number => Number(agent.snapshot.refreshAt) - agent.monotonic;
    await agent.read(agent.cacheSays(5, minute));
    expect(refreshIn()).toBe(6 * hour);
    await agent.read(agent.cacheSays(5, hour));
    expect(refreshIn()).toBe(0.6 * hour);
  });

  it('a cached read shows callers only newer data', async () => {
    await using agent = await createAgent({ uses: 5 });
    agent.pass(hour);
    await agent.read(agent.cacheSays(9, 2 * hour, { enabled: false }));
    expect(agent.snapshot).toMatchObject({
      confirmedAt: agent.now - hour,
      local: { uses: 5, enabled: true },
    });
    await agent.read(agent.cacheSays(9, 2 * minute));
    expect(agent.snapshot).toMatchObject({
      confirmedAt: agent.now - 2 * minute,
      local: { uses: 5, enabled: true },
    });
    await agent.read(agent.cacheSays(9, minute, { enabled: false }));
    expect(agent.snapshot).toMatchObject({ confirmedAt: agent.now - minute, local: { enabled: false } });
    // The count is still from the last uncached response: the next use is sent on it.
    await agent.record('usage');
    expect(await agent.plan('counter')).toMatchObject({
      step: 'send',
      operation: { progress: { baseUses: 5 } },
    });
  });

  it('a cached read does not enable a key that was seen disabled, however new it claims to be', async () => {
    await using agent = await createAgent({ uses: 5, enabled: false });
    agent.pass(hour);
    await agent.read(agent.cacheSays(5, second));
    expect(agent.snapshot.local.enabled).toBe(false);
    await agent.read(agent.says(5));
    expect(agent.snapshot.local.enabled).toBe(true);
  });

  it('a cached read does not bring back a key after a 404 of the upstream', async () => {
    await using agent = await createAgent({ uses: 5 });
    agent.pass(hour);
    await agent.read(no('missing'));
    const { missingSince } = agent.snapshot;
    agent.pass(minute);
    await agent.read(agent.cacheSays(5, second));
    expect(agent.snapshot).toMatchObject({ missingSince, confirmedAt: agent.now - hour - minute });
  });

  it('a cached 404 is no evidence that a key is gone', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.read(no('cached'));
    agent.pass(2 * hour);
    await agent.read(no('cached'));
    expect(agent.snapshot).toMatchObject({ missingSince: null, gone: false });
  });
});
