import { describe, expect, it } from 'vitest';
import { storedTime } from '../../src/service/lifecycle/time-mark.ts';
import { lastProductName } from '../../src/service/agent/products.ts';
import {
  createAgent,
  hour,
  key,
  lost,
  minute,
  no,
  productKey,
  refusalOf,
  second,
  valueOf,
  type AgentHarness,
} from '../support/harness/service-harness.ts';
import { isPaused } from '../../src/service/outbox/upstream/waits.ts';

const off = { enabled: false };

/** Records two 404s for the key, far enough apart. */
async function loseKey(agent: AgentHarness): Promise<void> {
  await agent.read(no('missing'));
  agent.pass(minute);
  await agent.read(no('missing'));
}

/** A disable that the upstream refused: the key still shows disabled here. */
async function refuseDisable(agent: AgentHarness): Promise<string> {
  const disable = await agent.record('disable');
  await agent.answer(await agent.send('state'), no('refused'));
  return disable;
}

/** An enable of a key that the upstream says is disabled, in flight. */
async function sendEnable(agent: AgentHarness) {
  await agent.read(agent.says(5, off));
  const enable = await agent.record('enable');
  await agent.read(agent.says(5, off));
  return { enable, flying: await agent.send('state', { justRead: true }) };
}

describe('a delivered change', () => {
  it('a delivered change confirms the key at the date of its response, and postpones the next refresh', async () => {
    await using agent = await createAgent({ uses: 5 });
    agent.pass(2 * hour);
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), agent.says(6));
    expect(agent.snapshot.confirmedAt).toBe(agent.now);
    expect(Number(agent.snapshot.refreshAt) - agent.monotonic).toBe(6 * hour);
  });

  it('the response to a change replaces the stored license, under the known spelling', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    const { value, ...rest } = agent.says(6);
    const told = { ...value, licenseKey: key.toLowerCase(), buyerEmail: 'new@example.com' };
    await agent.answer(await agent.send('counter'), { ...rest, value: told });
    expect(agent.snapshot.license).toMatchObject({
      licenseKey: key,
      buyerEmail: 'new@example.com',
      uses: 6,
    });
  });

  it('a delivered change does not move the next refresh if that is within the usual range', async () => {
    await using agent = await createAgent({ uses: 5 });
    agent.pass(hour);
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), agent.says(6));
    expect(agent.snapshot.confirmedAt).toBe(agent.now);
    expect(Number(agent.snapshot.refreshAt) - agent.monotonic).toBe(5 * hour);
  });

  it('a delivered change confirms the key no later than an upstream agent confirmed its response', async () => {
    await using agent = await createAgent({ uses: 5 });
    agent.pass(2 * hour);
    await agent.record('usage');
    const confirmedAt = agent.now - hour;
    await agent.answer(await agent.send('counter'), { ...agent.says(6), confirmedAt });
    expect(agent.snapshot.confirmedAt).toBe(confirmedAt);
  });

  it('a delivered use at an upstream agent with older knowledge undoes no newer refund', async () => {
    await using agent = await createAgent({ uses: 5 });
    const before = agent.now;
    agent.pass(hour);
    await agent.read(agent.says(5, { enabled: false }));
    const refundedAt = agent.now;
    agent.pass(hour);
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), { ...agent.says(6), confirmedAt: before });
    expect(agent.snapshot).toMatchObject({ license: { uses: 6, enabled: false }, confirmedAt: refundedAt });
  });

  it('the date of a delivered change is stored, and no clock goes back before it', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    agent.pass(2 * minute);
    await agent.answer(await agent.send('counter'), agent.says(6));
    expect(await storedTime(agent.store)).toMatchObject({ at: agent.now, isConfirmed: true });
  });

  it('a delivered change of a key that was missing once shows that the key exists', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    const flying = await agent.send('counter');
    await agent.read(no('missing'));
    expect(agent.snapshot.missingSince).not.toBeNull();
    await agent.answer(flying, agent.says(6));
    expect(agent.snapshot.missingSince).toBeNull();
  });

  it('a delivered change of a gone key brings the key back', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    const flying = await agent.send('counter');
    const behind = await agent.record('usage');
    await loseKey(agent);
    expect([agent.snapshot.gone, agent.stateOf(behind)]).toEqual([true, 'dead']);
    await agent.answer(flying, agent.says(6));
    expect([agent.snapshot.gone, agent.stateOf(behind)]).toEqual([false, 'pending']);
    expect(await agent.send('counter')).toMatchObject({ id: behind });
  });

  it('a delivered change makes the read after a 404 in the other queue unnecessary', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.record('disable');
    const use = await agent.send('counter');
    const disable = await agent.send('state');
    await agent.answer(use, no('missing'), { overlapped: true });
    await agent.answer(disable, agent.says(5, off), { overlapped: true });
    agent.pass(second);
    expect(await agent.plan('counter')).toMatchObject({ step: 'send' });
  });

  it('a delivered change of a key with other writers does not reset the flag for many writers', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.read(agent.says(4));
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), agent.says(5));
    expect(agent.snapshot.manyWriters).toBe(true);
  });
});

describe('the count in the response to a disable', () => {
  it('the count is not used while a use was under way, which the count may or may not contain', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.record('disable');
    const use = await agent.send('counter');
    const disable = await agent.send('state');
    await agent.answer(use, agent.says(6), { overlapped: true });
    const { unexpected } = await agent.answer(disable, agent.says(5, off), { overlapped: true });
    expect(unexpected).toBeNull();
    expect(agent.snapshot).toMatchObject({ manyWriters: false, license: { uses: 6, enabled: false } });
  });

  it('the count is not used while a use is uncertain, which the count may contain', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await agent.record('disable');
    agent.pass(minute);
    const { unexpected } = await agent.answer(await agent.send('state'), agent.says(6, off));
    expect(unexpected).toBeNull();
    await agent.read(agent.says(6, off));
    expect(agent.stateOf(use)).toBe('delivered');
  });

  it.each([
    ['the count is not used within the reconcile delay of a dropped use', minute - 1, 5],
    [
      'the count is used after the reconcile delay of a dropped use, and is no sign of another writer',
      minute,
      6,
    ],
  ])('%s', async (_, passed, uses) => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await agent.record('disable');
    agent.pass(passed);
    const flying = await agent.send('state');
    valueOf(await agent.writer.write('decideOperation', { operationId: use, decision: 'drop' }));
    const recorded = await agent.answer(flying, agent.says(6, off));
    expect(recorded.unexpected).toBeNull();
    expect(agent.snapshot.license.uses).toBe(uses);
  });

  it('the count is not used before the first read after a start, which has more to reconcile', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.restart();
    await agent.record('disable');
    const { unexpected } = await agent.answer(await agent.send('state'), agent.says(7, off));
    expect(unexpected).toBeNull();
    expect(agent.snapshot.license.uses).toBe(5);
    await agent.record('usage');
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
  });
});

describe('a delivered enable', () => {
  it('a delivered enable ends an earlier disable that the upstream had refused', async () => {
    await using agent = await createAgent({ uses: 5 });
    const disable = await refuseDisable(agent);
    const { flying } = await sendEnable(agent);
    await agent.answer(flying, agent.says(5));
    expect(agent.stateOf(disable)).toBe('cancelled');
    expect(agent.local.enabled).toBe(true);
  });

  it('an enable whose response was lost ends an earlier refused disable once a read shows that it was applied', async () => {
    await using agent = await createAgent({ uses: 5 });
    const disable = await refuseDisable(agent);
    const { enable, flying } = await sendEnable(agent);
    await agent.answer(flying, lost);
    agent.pass(minute);
    await agent.read(agent.says(5));
    expect([enable, disable].map((id) => agent.stateOf(id))).toEqual(['delivered', 'cancelled']);
    expect(agent.local.enabled).toBe(true);
  });

  it('a delivered enable ends no refused use', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('refused'));
    const { flying } = await sendEnable(agent);
    await agent.answer(flying, agent.says(5));
    expect(agent.stateOf(use)).toBe('dead');
  });

  it('a delivered enable ends no later change', async () => {
    await using agent = await createAgent({ uses: 5 });
    const { enable, flying } = await sendEnable(agent);
    await agent.answer(flying, lost);
    agent.pass(minute);
    await agent.read(agent.says(5, off));
    expect(agent.stateOf(enable)).toBe('held');
    // This agent's disable after that is refused.
    const disable = await refuseDisable(agent);
    valueOf(await agent.writer.write('decideOperation', { operationId: enable, decision: 'retry' }));
    await agent.read(agent.says(5, off));
    await agent.answer(await agent.send('state', { justRead: true }), agent.says(5));
    expect([enable, disable].map((id) => agent.stateOf(id))).toEqual(['inferred', 'dead']);
    expect(agent.local.enabled).toBe(false);
  });
});

describe('a delivered use', () => {
  it('a delivered use ends no refused disable: the key stays disabled here', async () => {
    await using agent = await createAgent({ uses: 5 });
    const disable = await refuseDisable(agent);
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), agent.says(6));
    expect(agent.stateOf(disable)).toBe('dead');
    expect(agent.local.enabled).toBe(false);
  });
});

describe('a failed attempt', () => {
  it('a failed attempt is reported with the state of the operation and the reason', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    const recorded = await agent.answer(await agent.send('counter'), no('unreachable'));
    expect(recorded).toMatchObject({ state: 'pending', lastError: 'no: unreachable' });
  });
});

describe('a late response', () => {
  it('a response to an operation that is no longer in flight is not recorded again', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    const { id } = await agent.send('counter');
    await agent.answer({ id }, agent.says(6));
    const { policy } = agent;
    for (const operationId of [id, 'none']) {
      const command = { operationId, outcome: agent.says(7), overlapped: false, policy };
      expect(refusalOf(await agent.writer.write('recordResponse', command))).toBe('operation_not_open');
    }
    expect(agent.snapshot.license.uses).toBe(6);
  });
});

describe('a key that returns', () => {
  it('a gone key that returns reopens the operations that died because it was gone, but not the refused operations', async () => {
    await using agent = await createAgent({ uses: 5 });
    const refused = await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('refused'));
    const missing = await agent.record('usage');
    await loseKey(agent);
    expect([refused, missing].map((id) => agent.stateOf(id))).toEqual(['dead', 'dead']);
    await agent.read(agent.says(5));
    expect([refused, missing].map((id) => agent.stateOf(id))).toEqual(['dead', 'pending']);
  });
});

describe('what the upstream sends beyond the specification', () => {
  const extra = { product_name: 'Press' };

  it('additional members of a license come from the last read', async () => {
    await using agent = await createAgent({ uses: 5 });
    expect(agent.snapshot.license.extra).toBeUndefined();
    await agent.read(agent.says(5, { extra }));
    expect(agent.snapshot.license.extra).toEqual(extra);
    await agent.read(agent.says(5));
    expect(agent.snapshot.license.extra).toBeUndefined();
  });

  it('the name of the product is the last name that the upstream sent for its key', async () => {
    await using agent = await createAgent({ uses: 5 });
    expect(lastProductName(agent.store, productKey)).toBeNull();
    await agent.read(agent.says(5, { extra }));
    expect(lastProductName(agent.store, productKey)).toBe('Press');
    expect(lastProductName(agent.store, 'another')).toBeNull();
    await agent.read(agent.says(5, { extra: { product_name: 7 } }));
    expect(lastProductName(agent.store, productKey)).toBeNull();
  });

  it('additional members of a license stay if the response to a change lacks them', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.read(agent.says(5, { extra }));
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), agent.says(6));
    expect(agent.snapshot.license).toMatchObject({ uses: 6, extra });
  });
});

describe('a read of a key', () => {
  it('a read after the first read since the start takes a moved count for another writer, and leaves the queue certain', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.restart();
    await agent.read(agent.says(5));
    const { unexpected } = await agent.read(agent.says(6));
    expect(unexpected).toEqual({ expected: 5, got: 6 });
    expect(agent.stateOf(use)).toBe('pending');
  });

  it('a first 404 to a read postpones the operations that are due', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.read(no('missing'));
    expect(agent.dueIn('counter')).toBe(500);
  });

  it('a key with a 404 is read again soon, and its operations do not wait for the end of an outage', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.read(no('missing'));
    expect(Number(agent.snapshot.refreshAt) - agent.monotonic).toBe(0.6 * hour);
    valueOf(await agent.writer.write('endOutage', {}));
    expect(agent.dueIn('counter')).toBe(500);
  });

  it('a cached read postpones the operations that are due, but not until the end of an outage', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.read(agent.cacheSays(5, minute));
    valueOf(await agent.writer.write('endOutage', {}));
    expect(agent.dueIn('counter')).toBe(500);
  });

  it('a key that no caller has asked for in a long time is not refreshed again', async () => {
    await using agent = await createAgent();
    agent.pass(15 * 24 * hour);
    await agent.read(agent.says(5));
    expect(agent.snapshot.refreshAt).toBeNull();
  });

  it('a read that reconciles a change of state makes the next operation due at once, whatever the first one waited for', async () => {
    for (const outcome of [{ ...lost, retryAfterMs: 2 * hour }, no('throttled', 2 * hour)]) {
      await using agent = await createAgent({ uses: 5 });
      const { enable, flying } = await sendEnable(agent);
      await agent.answer(flying, outcome);
      await agent.record('disable');
      agent.pass(minute);
      await agent.read(agent.says(5));
      expect([agent.stateOf(enable), agent.dueIn('state')]).toEqual(['delivered', 0]);
    }
  });

  it('a read leaves a change of state that it does not reconcile waiting', async () => {
    await using agent = await createAgent({ uses: 5 });
    const { flying } = await sendEnable(agent);
    await agent.answer(flying, no('throttled', 2 * hour));
    await agent.read(agent.says(5, off));
    expect(agent.dueIn('state')).toBe(2 * hour);
  });

  it('a read that shows the key disabled does not make a waiting disable unnecessary', async () => {
    await using agent = await createAgent({ uses: 5 });
    const disable = await agent.record('disable');
    await agent.read(agent.says(5, off));
    expect(agent.stateOf(disable)).toBe('pending');
  });

  it('a read with a rejected credential postpones nothing, because the whole product pauses', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.read(no('unauthorized'));
    expect(agent.dueIn('counter')).toBe(0);
  });

  it('a read that shows a newer disable ends an enable that was requested on an older snapshot', async () => {
    await using agent = await createAgent({ uses: 5 });
    agent.pass(25 * hour);
    const enable = await agent.record('enable');
    await agent.read(agent.says(5, off));
    expect(agent.stateOf(enable)).toBe('conflicted');
    expect(agent.operation(enable).lastError).toContain('a revocation wins');
    expect(agent.local.enabled).toBe(false);
  });

  it.each([
    [false, 'inferred'],
    [true, 'pending'],
  ])('a read after a restore reconciles a disable: enabled %s', async (enabled, state) => {
    await using agent = await createAgent({ uses: 5 });
    const disable = await agent.record('disable');
    await agent.writer.write('restore', {});
    await agent.restart();
    agent.pass(minute);
    await agent.read(agent.says(5, { enabled }));
    expect(agent.stateOf(disable)).toBe(state);
    expect(agent.local.enabled).toBe(false);
  });

  it('a read reconciles no enable in flight, which has its own response', async () => {
    await using agent = await createAgent({ uses: 5 });
    const { enable, flying } = await sendEnable(agent);
    await agent.read(agent.says(5));
    expect(agent.stateOf(enable)).toBe('in_flight');
    await agent.answer(flying, agent.says(5));
    expect(agent.stateOf(enable)).toBe('delivered');
  });

  it('a read that an enable waited for resets its number of failures', async () => {
    await using agent = await createAgent({ uses: 5, enabled: false });
    const enable = await agent.record('enable');
    await agent.read(no('unreachable'));
    expect(agent.operation(enable).failures).toBe(1);
    agent.pass(minute);
    await agent.read(agent.says(5, off));
    expect(agent.operation(enable).failures).toBe(0);
  });
});

describe('a restart', () => {
  it('an operation that a person must decide gets no new reconcile delay at a restart, and the next operation goes on', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'many', onUncertain: 'hold' });
    const held = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(6));
    expect(agent.stateOf(held)).toBe('held');
    await agent.record('usage');
    agent.pass(minute);
    await agent.writer.write('markTime', { mark: { at: agent.now, isConfirmed: true } });
    await agent.restart();
    await agent.read(agent.says(6));
    expect(await agent.plan('counter')).toMatchObject({ step: 'send' });
  });
});

describe('a pause of sync', () => {
  it('a pause of sync is stored until it is ended', async () => {
    await using agent = await createAgent();
    expect(isPaused(agent.store)).toBe(false);
    await agent.writer.write('pauseSync', { isPaused: true });
    await agent.restart();
    expect(isPaused(agent.store)).toBe(true);
    await agent.writer.write('pauseSync', { isPaused: false });
    expect(isPaused(agent.store)).toBe(false);
  });

  it.each([
    ['its end', 'pauseSync', { isPaused: false }, 0],
    ['its beginning', 'pauseSync', { isPaused: true }, hour],
    ['a sync that is asked for now', 'retryNow', {}, 0],
  ] as const)('the end of a pause and waits after a failure: %s', async (_, name, command, dueIn) => {
    await using agent = await createAgent();
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('throttled', hour));
    valueOf(await agent.writer.write(name, command));
    expect(agent.dueIn('counter')).toBe(dueIn);
  });
});

describe('an upstream agent that was restored', () => {
  it('a read with older knowledge replaces nothing, and the next newer read does', async () => {
    await using agent = await createAgent({ uses: 5 });
    const before = agent.now;
    agent.pass(hour);
    await agent.read(agent.says(6, { enabled: false }));
    const known = agent.snapshot;
    agent.pass(hour);
    await agent.read({ ...agent.says(5), confirmedAt: before });
    expect(agent.snapshot).toMatchObject({ license: known.license, confirmedAt: known.confirmedAt });
    await agent.read(agent.says(7));
    expect(agent.snapshot).toMatchObject({ license: { uses: 7, enabled: true }, confirmedAt: agent.now });
  });

  it('a read with older knowledge brings no gone key back', async () => {
    await using agent = await createAgent({ uses: 5 });
    const before = agent.now;
    agent.pass(hour);
    await agent.read(agent.says(5));
    await loseKey(agent);
    await agent.read({ ...agent.says(5), confirmedAt: before });
    expect(agent.snapshot.gone).toBe(true);
  });

  it('a read with older knowledge decides no lost response', async () => {
    await using agent = await createAgent({ uses: 5 });
    const before = agent.now;
    agent.pass(hour);
    await agent.read(agent.says(5));
    const id = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(hour);
    await agent.read({ ...agent.says(5), confirmedAt: before });
    expect(agent.stateOf(id)).toBe('uncertain');
    await agent.read(agent.says(6));
    expect(agent.stateOf(id)).toBe('delivered');
  });

  it('a read of the same second is not older, because the upstream says whole seconds', async () => {
    await using agent = await createAgent({ uses: 5 });
    agent.pass(second / 2);
    await agent.read(agent.says(5));
    const confirmedAt = Math.floor(agent.now / second) * second;
    await agent.read({ ...agent.says(6, { enabled: false }), confirmedAt });
    expect(agent.snapshot).toMatchObject({ license: { uses: 6, enabled: false }, confirmedAt });
  });
});
