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

describe('a use that is recorded on an agent', () => {
  it('shows at once, and goes up on the count that was last seen', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    expect(agent.local).toEqual({ uses: 6, enabled: true, pending: 1 });
    expect(await agent.send('counter')).toMatchObject({
      id: use,
      attempts: 1,
      progress: { state: 'in_flight', maybeApplied: false, baseUses: 5, sentAt: agent.elapsed },
    });
  });

  it('is delivered by a clean answer, whose count is the new base', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    const { unexpected } = await agent.answer(await agent.send('counter'), agent.says(6));
    expect(unexpected).toBeNull();
    expect(agent.stateOf(use)).toBe('delivered');
    expect(agent.snapshot.license.uses).toBe(6);
    expect(agent.local).toEqual({ uses: 6, enabled: true, pending: 0 });
  });

  it('keeps its place in its queue: the next one waits for it, then goes on the new count', async () => {
    await using agent = await createAgent({ uses: 5 });
    const first = await agent.record('usage');
    const second_ = await agent.record('decrease');
    const flying = await agent.send('counter');
    expect(flying.id).toBe(first);
    expect(await agent.plan('counter')).toEqual({ step: 'none' });
    await agent.answer(flying, agent.says(6));
    expect(await agent.send('counter')).toMatchObject({ id: second_, progress: { baseUses: 6 } });
  });

  it('is refused for a key that was never seen, or that another product has', async () => {
    await using agent = await createAgent();
    const unknown = await agent.change('usage', { licenseKey: 'OTHER' });
    expect(unknown).toMatchObject({ ok: false, problem: { code: 'upstream_unreachable' } });
    const command = { productKeys: ['other'], licenseKey: 'KEY-1', trigger: 'usage' } as const;
    const { freshness, maxPending } = agent;
    const foreign = await agent.writer.write('queueChange', { ...command, freshness, maxPending });
    expect(foreign).toMatchObject({ ok: false, problem: { code: 'license_not_found' } });
  });

  it('is refused when the outbox is full, uncertainty that a person must decide included', async () => {
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

  it('is refused when the outbox is full, what is under way included', async () => {
    await using agent = await createAgent();
    agent.maxPending = 2;
    await agent.record('usage');
    await agent.send('counter');
    expect(await agent.change('usage')).toMatchObject({ ok: true });
    expect(await agent.change('usage')).toMatchObject({ ok: false, problem: { code: 'storage_full' } });
  });

  it('is taken on an expired key only when it was enabled when last seen', async () => {
    await using agent = await createAgent();
    await using refused = await createAgent({ enabled: false });
    agent.pass(15 * 24 * hour);
    refused.pass(15 * 24 * hour);
    expect(await agent.change('usage')).toMatchObject({ ok: true });
    expect(await refused.change('usage')).toMatchObject({ ok: false, problem: { code: 'verdict_expired' } });
  });

  it('counts on a key that is disabled', async () => {
    await using agent = await createAgent({ uses: 5, enabled: false });
    await agent.record('usage');
    expect(agent.local).toEqual({ uses: 6, enabled: false, pending: 1 });
  });
});

describe('a count that was last seen before the start', () => {
  it('is no base: the key is read first', async () => {
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

  it('that has moved without explanation makes earlier operations uncertain, not those recorded since', async () => {
    await using agent = await createAgent({ uses: 5 });
    const earlier = [await agent.record('usage'), await agent.record('usage')];
    await agent.restart();
    const since = await agent.record('usage');
    await agent.read(agent.says(6));
    expect([...earlier, since].map((id) => agent.stateOf(id))).toEqual(['uncertain', 'uncertain', 'pending']);
    expect(agent.local.pending).toBe(3);
    expect(agent.dueIn('counter')).toBe(minute);
    // Whoever has the key read before that reconciles nothing: what was sent may still be on its way.
    agent.pass(minute - second);
    await agent.read(agent.says(6));
    expect([...earlier, since].map((id) => agent.stateOf(id))).toEqual(['uncertain', 'uncertain', 'pending']);
    agent.pass(second);
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
    await agent.read(agent.says(6));
    expect([...earlier, since].map((id) => agent.stateOf(id))).toEqual(['inferred', 'pending', 'pending']);
    expect(await agent.send('counter')).toMatchObject({ id: earlier[1], progress: { baseUses: 6 } });
  });

  it('that has moved as no operation of this agent explains makes the key one of many writers, and the queue is sent', async () => {
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

  it('that nothing explains is another writer’s, and neither uncertainty nor queue is certain after that', async () => {
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

  it('that others may have moved gives up no queue that was never sent', async () => {
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

  it('is not made up for by a read before the reconcile delay, which leaves the first one after it to tell', async () => {
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

  it('is not made a base by the answer to a change of state', async () => {
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

describe('what was in flight when the process ended', () => {
  it('is uncertain after the start, and read back once the reconcile delay is over', async () => {
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

  it('waits the whole reconcile delay again after a start in the middle of it', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    // The next process may count its elapsed time from elsewhere: what is left of the reconcile delay is not known.
    agent.elapsed += 2 * hour;
    await agent.restart();
    expect(agent.dueIn('counter')).toBe(minute);
  });
});

describe('a use whose answer was lost', () => {
  it('waits for the reconcile delay: no sooner is it read back, and no read before reconciles it', async () => {
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

  it('is not reconciled by a read that was sent before the reconcile delay and answered after it', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute + second);
    await agent.read(agent.says(5), { sentAt: agent.elapsed - second - 1 });
    expect(agent.stateOf(use)).toBe('uncertain');
  });

  it('keeps its reconcile delay through a read that brings nothing', async () => {
    await using agent = await createAgent({ uses: 5 }, { goneMs: second });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    for (const outcome of [no('unreachable'), lost, no('missing'), no('throttled')]) {
      await agent.read(outcome);
      expect(agent.dueIn('counter')).toBe(minute);
    }
  });

  it('waits for as long as the upstream asks when that is longer', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), { ...lost, retryAfterMs: hour });
    expect(agent.dueIn('counter')).toBe(hour);
  });

  it('counted, with a single writer, when the count has moved by it', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(6));
    expect(agent.stateOf(use)).toBe('delivered');
  });

  it('is sent again, with a single writer, when the count has not moved, and ends delivered', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(5));
    expect(agent.operation(use).progress).toEqual({ state: 'pending', maybeApplied: false });
    await agent.answer(await agent.send('counter', sent), agent.says(6));
    expect(agent.operation(use)).toMatchObject({ attempts: 2, progress: { state: 'delivered' } });
  });

  it('is sent again, with many writers, when the count has not moved, and ends inferred', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'many' });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(5));
    expect(agent.operation(use).progress).toEqual({ state: 'pending', maybeApplied: true });
    await agent.answer(await agent.send('counter'), agent.says(6));
    expect(agent.stateOf(use)).toBe('inferred');
    expect(agent.local).toEqual({ uses: 6, enabled: true, pending: 0 });
  });

  it('is inferred, with many writers, when the count has moved by it', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'many' });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    const { unexpected } = await agent.read(agent.says(6));
    expect(unexpected).toBeNull();
    expect(agent.stateOf(use)).toBe('inferred');
  });

  it('is inferred when the count has moved by anything else, and both numbers are told', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    const { unexpected } = await agent.read(agent.says(8));
    expect(unexpected).toEqual({ expected: 5, got: 8 });
    expect(agent.stateOf(use)).toBe('inferred');
    expect(agent.snapshot.manyWriters).toBe(true);
  });

  it('is held for a person where that is asked for, and leaves the queue to those behind it', async () => {
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

  it('that is held says why, not what an earlier read was answered', async () => {
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

  it('is not held where the count has not moved: it is sent again', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'many', onUncertain: 'hold' });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(5));
    expect(agent.operation(use).progress).toEqual({ state: 'pending', maybeApplied: true });
  });

  it('is reconciled together with the others uncertain, in their order, and none of them for certain', async () => {
    await using agent = await createAgent({ uses: 5 });
    const uses = [];
    for (let index = 0; index < 4; index += 1) uses.push(await agent.record('usage'));
    await agent.send('counter');
    await agent.restart();
    agent.pass(minute);
    // Two more than the one in flight have arrived: a past that this store does not remember.
    await agent.read(agent.says(8));
    expect(uses.map((id) => agent.stateOf(id))).toEqual(Array(4).fill('uncertain'));
    agent.pass(minute);
    await agent.read(agent.says(8));
    expect(uses.map((id) => agent.stateOf(id))).toEqual(['inferred', 'inferred', 'inferred', 'pending']);
    expect(agent.local).toEqual({ uses: 9, enabled: true, pending: 1 });
  });

  it('shows no second time in the answer to a change of state', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await agent.record('disable');
    await agent.answer(await agent.send('state'), agent.says(6, { enabled: false }));
    expect(agent.local).toEqual({ uses: 6, enabled: false, pending: 1 });
  });
});

describe('a use that certainly was not applied', () => {
  it('waits with backoff while the upstream cannot be reached, and goes on when it is back', async () => {
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

  it('begins a new row of failures once the read that it waited for has come', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.restart();
    await agent.read(no('unreachable'));
    expect(agent.operation(use).failures).toBe(1);
    agent.pass(second);
    await agent.read(agent.says(5));
    expect(agent.operation(use).failures).toBe(0);
  });

  it('waits when the upstream asks for it, which the end of an outage does not change', async () => {
    await using agent = await createAgent();
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('throttled', hour));
    expect(agent.dueIn('counter')).toBe(hour);
    await agent.writer.write('endOutage', {});
    expect(agent.dueIn('counter')).toBe(hour);
  });

  it('waits as after any failure when the credential is refused: it may be refused for this key alone', async () => {
    await using agent = await createAgent();
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('unauthorized'));
    expect(agent.stateOf(use)).toBe('pending');
    expect(agent.dueIn('counter')).toBe(500);
  });

  it('is dead when the upstream will never take it, and the reason is kept', async () => {
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

  it('keeps its uncertainty through it', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'many' });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(5));
    await agent.answer(await agent.send('counter'), no('unreachable'));
    expect(agent.operation(use).progress).toEqual({ state: 'pending', maybeApplied: true });
  });
});

describe('a key that the upstream does not know any more', () => {
  it('keeps its operations until reads have said so twice, far enough apart, then they are dead', async () => {
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
    'is gone after the time that really passed between two reads, also where the clock %s',
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

  it('is not gone because a write was answered 404, however often: the next step is a read', async () => {
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

  it('is not gone while another known key is answered 404 too: that is a gateway', async () => {
    await using agent = await createAgent();
    const use = await agent.record('usage');
    for (let hours = 0; hours < 48; hours += 1) {
      await agent.read(no('missing'), { isMissingConfirmed: false });
      agent.pass(hour);
    }
    expect(agent.snapshot).toMatchObject({ missingSince: null, gone: false });
    expect(agent.stateOf(use)).toBe('pending');
  });

  it('is still read once it is gone, rarely, and brings back what had died with it when it is seen again', async () => {
    await using agent = await createAgent({ uses: 5 }, { goneMs: 24 * hour });
    const use = await agent.record('usage');
    const disable = await agent.record('disable');
    await agent.answer(await agent.send('state'), no('refused'));
    await agent.read(no('missing'));
    agent.pass(24 * hour);
    await agent.read(no('missing'));
    expect([agent.stateOf(use), agent.stateOf(disable)]).toEqual(['dead', 'dead']);
    expect((agent.snapshot.refreshAt ?? 0) - agent.elapsed).toBe(24 * hour);
    await agent.read(agent.says(5));
    expect([agent.stateOf(use), agent.stateOf(disable)]).toEqual(['pending', 'dead']);
    expect(agent.snapshot.gone).toBe(false);
    expect(agent.local).toMatchObject({ uses: 6, pending: 1 });
    await agent.answer(await agent.send('counter'), agent.says(6));
    expect(agent.stateOf(use)).toBe('delivered');
  });

  it('sends a change of state that it brings back, too', async () => {
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

  it('brings them back in front of one that a person has sent again meanwhile', async () => {
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

  it('holds what may have been applied before it was gone, for a person', async () => {
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

  it('shows no other writer when it comes back with what may have been applied before', async () => {
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

  it('shows another writer in the read that a write answered 404 asked for', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('missing'));
    agent.pass(minute);
    expect(await agent.read(agent.says(9))).toEqual({ unexpected: { expected: 5, got: 9 } });
  });

  it('is not gone when it was found in between', async () => {
    await using agent = await createAgent();
    await agent.record('usage');
    await agent.read(no('missing'));
    await agent.read(agent.says(5));
    agent.pass(minute);
    await agent.read(no('missing'));
    expect(agent.snapshot.gone).toBe(false);
  });

  it('is not gone for anything but a 404', async () => {
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

describe('a use that is taken back', () => {
  it('is sent when there is one to take back', async () => {
    await using agent = await createAgent({ uses: 1 });
    const undo = await agent.record('decrease');
    expect(agent.local.uses).toBe(0);
    await agent.answer(await agent.send('counter'), agent.says(0));
    expect(agent.stateOf(undo)).toBe('delivered');
  });

  it('whose answer was lost counts when the count has gone down by it', async () => {
    await using agent = await createAgent({ uses: 5 });
    const undo = await agent.record('decrease');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    const { unexpected } = await agent.read(agent.says(4));
    expect([unexpected, agent.stateOf(undo)]).toEqual([null, 'delivered']);
  });

  it('is not sent at 0: the key is read for it, and a 0 reconciles it', async () => {
    await using agent = await createAgent({ uses: 0 });
    const undo = await agent.record('decrease');
    expect(agent.local).toEqual({ uses: 0, enabled: true, pending: 1 });
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
    await agent.read(agent.says(0));
    expect(agent.operation(undo)).toMatchObject({ attempts: 0, progress: { state: 'delivered' } });
  });

  it('is sent after all when the read made for it shows a use', async () => {
    await using agent = await createAgent({ uses: 0 });
    const undo = await agent.record('decrease');
    await agent.read(agent.says(1));
    expect(await agent.send('counter', { justRead: true })).toMatchObject({
      id: undo,
      progress: { baseUses: 1 },
    });
  });

  it('is not reconciled by a read that was sent before it was recorded', async () => {
    await using agent = await createAgent({ uses: 0 });
    const sentAt = agent.elapsed;
    agent.pass(second);
    const undo = await agent.record('decrease');
    await agent.read(agent.says(0), { sentAt });
    expect(agent.stateOf(undo)).toBe('pending');
    expect(await agent.plan('counter', { justRead: true })).toEqual({ step: 'read' });
  });

  it('is not sent on a count below 0 that an upstream without a floor shows', async () => {
    await using agent = await createAgent({ uses: -2 });
    const undo = await agent.record('decrease');
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
    await agent.read(agent.says(-2));
    expect(agent.stateOf(undo)).toBe('delivered');
  });

  it('behind a use is reconciled in its order', async () => {
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
  it('is told by an answer whose count moved by other than one, and is not forgotten', async () => {
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

  it('is told by the answer to a use that was taken back', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('decrease');
    const { unexpected } = await agent.answer(await agent.send('counter'), agent.says(9));
    expect(unexpected).toEqual({ expected: 4, got: 9 });
  });

  it('is told by a read that no operation explains', async () => {
    await using agent = await createAgent({ uses: 5 });
    const { unexpected } = await agent.read(agent.says(4));
    expect(unexpected).toEqual({ expected: 5, got: 4 });
    expect(agent.snapshot).toMatchObject({ manyWriters: true, license: { uses: 4 } });
  });

  it('is told by the answer to a change of state', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('disable');
    const { unexpected } = await agent.answer(await agent.send('state'), agent.says(6, { enabled: false }));
    expect(unexpected).toEqual({ expected: 5, got: 6 });
    expect(agent.snapshot).toMatchObject({ manyWriters: true, license: { uses: 6, enabled: false } });
  });

  it('makes later uncertainty about the key an inference, whatever is configured', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.read(agent.says(4));
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(5));
    expect(agent.stateOf(use)).toBe('inferred');
  });
});

describe('a read that a cache on the way answered', () => {
  it('reconciles no uncertainty: it is read again', async () => {
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

  it('is no base: after a start the key is read again before anything is sent', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.restart();
    await agent.read(agent.cacheSays(5, second));
    agent.pass(minute);
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
    await agent.read(agent.says(5));
    expect(await agent.plan('counter')).toMatchObject({ step: 'send', baseUses: 5 });
  });

  it('of a key that was never seen lets it be verified, as old as it is, and is no base either', async () => {
    await using agent = new AgentHarness();
    await agent.start();
    await agent.read(agent.cacheSays(5, hour));
    expect(agent.snapshot).toMatchObject({ confirmedAt: agent.now - hour, local: { uses: 5 } });
    await agent.record('usage');
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
  });

  it('is followed by the next refresh in its time, or sooner when it was nothing new', async () => {
    await using agent = await createAgent();
    agent.pass(hour);
    const refreshIn = (): number => Number(agent.snapshot.refreshAt) - agent.elapsed;
    await agent.read(agent.cacheSays(5, minute));
    expect(refreshIn()).toBe(6 * hour);
    await agent.read(agent.cacheSays(5, hour));
    expect(refreshIn()).toBe(0.6 * hour);
  });

  it('shows callers what is newer than what they saw, and nothing older', async () => {
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
    // The count is still that of the upstream's own last answer: the next use goes up on it.
    await agent.record('usage');
    expect(await agent.plan('counter')).toMatchObject({ step: 'send', baseUses: 5 });
  });

  it('does not enable a key that was seen disabled, however new it seems to be', async () => {
    await using agent = await createAgent({ uses: 5, enabled: false });
    agent.pass(hour);
    await agent.read(agent.cacheSays(5, second));
    expect(agent.snapshot.local.enabled).toBe(false);
    await agent.read(agent.says(5));
    expect(agent.snapshot.local.enabled).toBe(true);
  });

  it('does not bring back a key of which the upstream said 404 since', async () => {
    await using agent = await createAgent({ uses: 5 });
    agent.pass(hour);
    await agent.read(no('missing'));
    const { missingSince } = agent.snapshot;
    agent.pass(minute);
    await agent.read(agent.cacheSays(5, second));
    expect(agent.snapshot).toMatchObject({ missingSince, confirmedAt: agent.now - hour - minute });
  });

  it('with 404 is no evidence that the key is gone', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.read(no('cached'));
    agent.pass(2 * hour);
    await agent.read(no('cached'));
    expect(agent.snapshot).toMatchObject({ missingSince: null, gone: false });
  });
});
