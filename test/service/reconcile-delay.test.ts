import { describe, expect, it } from 'vitest';
import type { Decision } from '../../src/domain/outbox/explanation.ts';
import {
  createAgent,
  lost,
  minute,
  no,
  second,
  valueOf,
  type AgentHarness,
} from '../support/harness/service-harness.ts';
import { retryAfterUntil } from '../../src/service/outbox/upstream/waits.ts';

async function decide(agent: AgentHarness, operationId: string, decision: Decision): Promise<void> {
  valueOf(await agent.writer.write('decideOperation', { operationId, decision }));
  agent.check();
}

async function syncNow(agent: AgentHarness): Promise<void> {
  valueOf(await agent.writer.write('retryNow', {}));
  agent.check();
}

describe('requests that may still arrive', () => {
  it('a retry by a person and sync now do not overtake a request that may still arrive', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await decide(agent, use, 'retry');
    expect(agent.dueIn('counter')).toBe(minute);
    await syncNow(agent);
    expect(agent.dueIn('counter')).toBe(minute);
  });

  it('a dead operation that is retried in front does not overtake a request that may still arrive', async () => {
    await using agent = await createAgent({ uses: 5 });
    const dead = await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('refused'));
    const maybeApplied = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await decide(agent, dead, 'retry');
    await syncNow(agent);
    expect(await agent.plan('counter')).toEqual({ step: 'none' });
    agent.pass(second);
    await agent.read(agent.says(5));
    expect(agent.stateOf(maybeApplied)).toBe('uncertain');
    agent.pass(minute);
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
  });

  it('a disable behind a dropped enable does not overtake a request that may still arrive', async () => {
    await using agent = await createAgent({ uses: 5, enabled: false });
    const enable = await agent.record('enable');
    await agent.read(agent.says(5, { enabled: false }));
    await agent.answer(await agent.send('state', { justRead: true }), lost);
    const disable = await agent.record('disable');
    await decide(agent, enable, 'drop');
    expect(agent.dueIn('state')).toBe(minute);
    await syncNow(agent);
    expect(await agent.plan('state')).toEqual({ step: 'none' });
    agent.pass(minute);
    expect(await agent.send('state')).toMatchObject({ id: disable });
  });

  it('no read in the meantime overtakes a request that may still arrive', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await decide(agent, use, 'retry');
    agent.pass(second);
    await agent.read(agent.says(5));
    expect(await agent.plan('counter')).toEqual({ step: 'none' });
    agent.pass(minute);
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
  });

  it('a restart does not shorten the reconcile delay, even of an operation that was dropped before', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await decide(agent, use, 'drop');
    agent.pass(50 * second);
    await agent.restart();
    await agent.record('usage');
    agent.pass(minute - 1);
    await agent.read(agent.says(5));
    expect(await agent.plan('counter')).toEqual({ step: 'none' });
    agent.pass(1);
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
  });

  it('a restart does not shorten the reconcile delay in either queue of a key', async () => {
    await using agent = await createAgent({ uses: 5, enabled: false });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await agent.record('enable');
    await agent.answer(await agent.send('state', { justRead: true }), lost);
    await agent.restart();
    expect([agent.dueIn('counter'), agent.dueIn('state')]).toEqual([minute, minute]);
  });

  it('the end of an outage does not shorten the reconcile delay', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    valueOf(await agent.writer.write('endOutage', {}));
    expect(agent.dueIn('counter')).toBe(minute);
  });

  it('a disable is sent again at once when an outage has ended', async () => {
    await using agent = await createAgent();
    await agent.record('disable');
    await agent.answer(await agent.send('state'), lost);
    expect(agent.dueIn('state')).toBe(500);
    valueOf(await agent.writer.write('endOutage', {}));
    expect(agent.dueIn('state')).toBe(0);
  });

  it('a wait because of an outage ends with the outage, even after a restart', async () => {
    await using agent = await createAgent(
      { uses: 5 },
      { backoff: { firstMs: 60 * minute, maxMs: 60 * minute } },
    );
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(lost);
    expect(agent.dueIn('counter')).toBe(30 * minute);
    await agent.restart();
    valueOf(await agent.writer.write('endOutage', {}));
    agent.pass(minute);
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
  });

  it('a restart does not renew a reconcile delay that has passed', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await decide(agent, use, 'drop');
    agent.pass(2 * minute);
    await agent.writer.write('markTime', { mark: { at: agent.now, isConfirmed: true } });
    await agent.restart();
    await agent.record('usage');
    await agent.read(agent.says(5));
    expect(await agent.plan('counter')).toMatchObject({ step: 'send' });
  });
});

describe('Retry-After', () => {
  it('a shorter Retry-After does not shorten a longer one', async () => {
    await using agent = await createAgent();
    for (const until of [2000, 1000]) await agent.writer.write('storeRetryAfter', { until });
    expect(retryAfterUntil(agent.store)).toBe(2000);
  });
});

describe('a wait that has not passed', () => {
  it('planning the next step of a queue does not end its wait', async () => {
    await using agent = await createAgent();
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('throttled', 60 * minute));
    agent.pass(60 * minute - 1);
    expect(await agent.plan('counter')).toEqual({ step: 'none' });
    agent.pass(1);
    expect(await agent.plan('counter')).toMatchObject({ step: 'send' });
  });

  it('a read of the key does not shorten the wait of a disable', async () => {
    await using agent = await createAgent();
    await agent.record('disable');
    await agent.answer(await agent.send('state'), no('throttled', 60 * minute));
    await agent.read(agent.says(5));
    expect(agent.dueIn('state')).toBe(60 * minute);
  });

  it('a restart shortens neither a wait nor the number of failures', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), { ...lost, retryAfterMs: 60 * minute });
    await agent.restart();
    expect(agent.dueIn('counter')).toBe(60 * minute - second);
    expect(agent.operation(use).failures).toBe(1);
  });

  it('a read for another purpose does not shorten a wait', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('throttled', 60 * minute));
    await agent.read(agent.says(5));
    await agent.read(no('unreachable'));
    expect(agent.dueIn('counter')).toBe(60 * minute);
  });
});
