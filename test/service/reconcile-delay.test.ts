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
import { retryAfterUntil } from '../../src/service/outbox/sync-marks.ts';

async function decide(agent: AgentHarness, operationId: string, decision: Decision): Promise<void> {
  valueOf(await agent.writer.write('decideOperation', { operationId, decision }));
  agent.check();
}

async function syncNow(agent: AgentHarness): Promise<void> {
  valueOf(await agent.writer.write('retryNow', {}));
  agent.check();
}

describe('what may still be on its way is overtaken by nothing', () => {
  it('not by a person who retries it and asks to sync now', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await decide(agent, use, 'retry');
    expect(agent.dueIn('counter')).toBe(minute);
    await syncNow(agent);
    expect(agent.dueIn('counter')).toBe(minute);
  });

  it('not by a dead one that is retried in front of it', async () => {
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

  it('not by a disable behind an enable that was dropped', async () => {
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

  it('not by any read that is made meanwhile', async () => {
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

  it('not by a restart, also when it was dropped before', async () => {
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

  it('not in either queue of a key by a restart', async () => {
    await using agent = await createAgent({ uses: 5, enabled: false });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await agent.record('enable');
    await agent.answer(await agent.send('state', { justRead: true }), lost);
    await agent.restart();
    expect([agent.dueIn('counter'), agent.dueIn('state')]).toEqual([minute, minute]);
  });

  it('not by the end of an outage', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    valueOf(await agent.writer.write('endOutage', {}));
    expect(agent.dueIn('counter')).toBe(minute);
  });

  it('but a disable is sent again at once when an outage has ended', async () => {
    await using agent = await createAgent();
    await agent.record('disable');
    await agent.answer(await agent.send('state'), lost);
    expect(agent.dueIn('state')).toBe(500);
    valueOf(await agent.writer.write('endOutage', {}));
    expect(agent.dueIn('state')).toBe(0);
  });

  it('but a wait that an outage had set ends with it, also after a restart', async () => {
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

  it('and a reconcile delay that has passed is not renewed by a restart', async () => {
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

describe('the quiet that the upstream asked for', () => {
  it('is not cut short by a shorter one', async () => {
    await using agent = await createAgent();
    for (const until of [2000, 1000]) await agent.writer.write('keepRetryAfter', { until });
    expect(retryAfterUntil(agent.store)).toBe(2000);
  });
});

describe('a wait that has not passed', () => {
  it('is not overtaken by a look at its queue', async () => {
    await using agent = await createAgent();
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('throttled', 60 * minute));
    agent.pass(60 * minute - 1);
    expect(await agent.plan('counter')).toEqual({ step: 'none' });
    agent.pass(1);
    expect(await agent.plan('counter')).toMatchObject({ step: 'send' });
  });

  it('is not cut short by a read of its key: a disable', async () => {
    await using agent = await createAgent();
    await agent.record('disable');
    await agent.answer(await agent.send('state'), no('throttled', 60 * minute));
    await agent.read(agent.says(5));
    expect(agent.dueIn('state')).toBe(60 * minute);
  });

  it('is not cut short by a restart, nor is its row of failures', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), { ...lost, retryAfterMs: 60 * minute });
    await agent.restart();
    expect(agent.dueIn('counter')).toBe(60 * minute - second);
    expect(agent.operation(use).failures).toBe(1);
  });

  it('is not cut short by a read that was made for something else', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('throttled', 60 * minute));
    await agent.read(agent.says(5));
    await agent.read(no('unreachable'));
    expect(agent.dueIn('counter')).toBe(60 * minute);
  });
});
