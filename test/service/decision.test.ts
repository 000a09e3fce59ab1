import { describe, expect, it } from 'vitest';
import type { Decision } from '../../src/domain/outbox/explanation.ts';
import {
  createAgent,
  hour,
  lost,
  minute,
  no,
  refusalOf,
  second,
  valueOf,
  type AgentHarness,
} from '../support/harness/service-harness.ts';

async function decide(agent: AgentHarness, operationId: string, decision: Decision): Promise<string> {
  const decided = await agent.writer.write('decideOperation', { operationId, decision });
  agent.check();
  return valueOf(decided).operation.progress.state;
}

/** An agent with one use that the upstream refused for good. */
async function createDead(uses: number = 5): Promise<{ agent: AgentHarness; dead: string }> {
  const agent = await createAgent({ uses });
  const dead = await agent.record('usage');
  await agent.answer(await agent.send('counter'), no('refused'));
  return { agent, dead };
}

describe('a person decides about an operation', () => {
  it('that was refused: it is sent again', async () => {
    const { agent, dead } = await createDead();
    await using _ = agent;
    expect(await decide(agent, dead, 'retry')).toBe('pending');
    expect(agent.local).toEqual({ uses: 6, enabled: true, pending: 1 });
    expect(await agent.send('counter')).toMatchObject({ id: dead, attempts: 2 });
  });

  it('that was refused: it is given up, or said to be applied', async () => {
    const { agent, dead } = await createDead();
    await using _ = agent;
    expect(await decide(agent, dead, 'drop')).toBe('dropped');
    const other = await createDead();
    await using __ = other.agent;
    expect(await decide(other.agent, other.dead, 'confirm')).toBe('delivered');
  });

  it('that waits: it is given up, and those behind it go on', async () => {
    await using agent = await createAgent({ uses: 5 });
    const first = await agent.record('usage');
    const next = await agent.record('usage');
    expect(await decide(agent, first, 'drop')).toBe('dropped');
    expect(agent.local).toEqual({ uses: 6, enabled: true, pending: 1 });
    expect(await agent.send('counter')).toMatchObject({ id: next });
  });

  it('of which none is open to it: it is refused', async () => {
    await using agent = await createAgent();
    const use = await agent.record('usage');
    await agent.send('counter');
    for (const decision of ['retry', 'drop', 'confirm'] as const) {
      const decided = await agent.writer.write('decideOperation', { operationId: use, decision });
      expect(refusalOf(decided)).toBe('operation_not_open');
    }
    const none = await agent.writer.write('decideOperation', { operationId: 'none', decision: 'drop' });
    expect(refusalOf(none)).toBe('operation_not_found');
  });

  it('that was held: it is sent again at the risk of counting twice, which it says, and ends inferred', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'many', onUncertain: 'hold' });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(6));
    expect(await decide(agent, use, 'retry')).toBe('pending');
    expect(agent.operation(use).lastError).toMatch(/may be applied twice/);
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
    await agent.read(agent.says(6));
    await agent.answer(await agent.send('counter'), agent.says(7));
    expect(agent.stateOf(use)).toBe('inferred');
  });

  it('that is uncertain: given up, it keeps what is known of it', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    const { lastError } = agent.operation(use);
    expect(await decide(agent, use, 'drop')).toBe('dropped');
    expect(agent.operation(use).lastError).toBe(lastError);
  });

  it.each([
    ['retry', 'applied', 6],
    ['retry', 'not applied', 5],
    ['drop', 'applied', 6],
    ['drop', 'not applied', 5],
  ] as const)(
    'that is uncertain, %s, and was %s: its count is no sign of another writer',
    async (decision, _, uses) => {
      await using agent = await createAgent({ uses: 5 });
      const use = await agent.record('usage');
      await agent.answer(await agent.send('counter'), lost);
      await decide(agent, use, decision);
      await agent.record('usage');
      agent.pass(minute);
      expect(await agent.plan('counter')).toEqual({ step: 'read' });
      expect(await agent.read(agent.says(uses))).toEqual({ unexpected: null });
      expect(await agent.answer(await agent.send('counter'), agent.says(uses + 1))).toMatchObject({
        unexpected: null,
      });
      expect(agent.snapshot.manyWriters).toBe(false);
    },
  );

  it.each(['retry', 'drop', 'confirm'] as const)(
    'that is uncertain, %s: a change of state within its reconcile delay leaves its count to be read before the next is sent',
    async (decision) => {
      await using agent = await createAgent({ uses: 5 });
      const use = await agent.record('usage');
      await agent.answer(await agent.send('counter'), lost);
      await decide(agent, use, decision);
      await agent.record('disable');
      await agent.answer(await agent.send('state'), agent.says(6, { enabled: false }));
      await agent.record('usage');
      agent.pass(minute);
      expect(await agent.plan('counter')).toEqual({ step: 'read' });
    },
  );

  it('that is uncertain and had arrived, given up: the next one is not taken for it', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await decide(agent, use, 'drop');
    await agent.record('disable');
    await agent.answer(await agent.send('state'), agent.says(6, { enabled: false }));
    const next = await agent.record('usage');
    agent.pass(minute);
    await agent.plan('counter');
    await agent.read(agent.says(6, { enabled: false }));
    await agent.answer(await agent.send('counter', { justRead: true }), lost);
    agent.pass(minute);
    await agent.read(agent.says(6, { enabled: false }));
    expect(agent.stateOf(next)).toBe('pending');
  });

  it('that is uncertain and had arrived, given up before a restart: those behind it are sent', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    const next = await agent.record('usage');
    await decide(agent, use, 'drop');
    await agent.restart();
    agent.pass(minute);
    expect(await agent.read(agent.says(6))).toEqual({ unexpected: null });
    await agent.answer(await agent.send('counter'), agent.says(7));
    expect(agent.stateOf(next)).toBe('delivered');
  });

  it('that is uncertain, given up, while the key is missing for a while: its count is no sign of another writer', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await decide(agent, use, 'drop');
    agent.pass(minute);
    await agent.read(no('missing'));
    agent.pass(second);
    expect(await agent.read(agent.says(6))).toEqual({ unexpected: null });
  });

  it('that enables, against a newer disable: retried, it is sent all the same', async () => {
    await using agent = await createAgent({ uses: 5 });
    agent.pass(25 * hour);
    const enable = await agent.record('enable');
    await agent.read(agent.says(5, { enabled: false }));
    expect(agent.stateOf(enable)).toBe('conflicted');
    await decide(agent, enable, 'retry');
    await agent.read(agent.says(5, { enabled: false }));
    expect(await agent.send('state', { justRead: true })).toMatchObject({ id: enable });
  });

  it('that enables: once it is given up, the next use need not wait for a read', async () => {
    await using agent = await createAgent({ uses: 5, enabled: false });
    const enable = await agent.record('enable');
    await agent.answer(await agent.send('state', { justRead: true }), lost);
    await decide(agent, enable, 'drop');
    await agent.record('usage');
    expect(await agent.plan('counter')).toMatchObject({ step: 'send' });
  });

  it('that disables: once it is given up, the key is as the upstream says', async () => {
    await using agent = await createAgent();
    const disable = await agent.record('disable');
    await agent.answer(await agent.send('state'), no('refused'));
    expect(agent.local).toEqual({ uses: 5, enabled: false, pending: 0 });
    await decide(agent, disable, 'drop');
    expect(agent.local).toEqual({ uses: 5, enabled: true, pending: 0 });
  });
});

describe('a decision beside what is under way', () => {
  it.each(['retry', 'drop', 'confirm'] as const)(
    'leaves the reconcile delay of another one: %s',
    async (decision) => {
      const { agent, dead } = await createDead();
      await using _ = agent;
      const maybeApplied = await agent.record('usage');
      await agent.answer(await agent.send('counter'), lost);
      agent.pass(second);
      await decide(agent, dead, decision);
      expect(agent.dueIn('counter')).toBe(minute - second);
      expect(agent.stateOf(maybeApplied)).toBe('uncertain');
    },
  );

  it.each(['retry', 'drop'] as const)('leaves one in flight alone: %s', async (decision) => {
    const { agent, dead } = await createDead();
    await using _ = agent;
    const flying = await agent.record('usage');
    const operation = await agent.send('counter');
    valueOf(await agent.writer.write('decideOperation', { operationId: dead, decision }));
    expect(agent.operation(flying).nextAt).toBeNull();
    expect(agent.store.operations.due(agent.elapsed, 10, () => true)).toEqual([]);
    await agent.answer(operation, agent.says(6));
    expect(agent.stateOf(flying)).toBe('delivered');
    expect(agent.dueIn('counter')).toBe(decision === 'retry' ? 0 : null);
  });

  it('sends nothing before the uncertainty behind it is reconciled', async () => {
    const { agent, dead } = await createDead();
    await using _ = agent;
    const maybeApplied = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await decide(agent, dead, 'retry');
    agent.pass(minute);
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
    await agent.read(agent.says(6));
    expect(agent.stateOf(maybeApplied)).toBe('delivered');
    expect(await agent.send('counter')).toMatchObject({ id: dead, progress: { baseUses: 6 } });
  });
});

describe('a change that a person says was applied', () => {
  it.each([
    ['usage', 6],
    ['decrease', 4],
  ] as const)('counts as such: %s', async (trigger, uses) => {
    await using agent = await createAgent({ uses: 5 });
    const refused = await agent.record(trigger);
    await agent.answer(await agent.send('counter'), no('refused'));
    await decide(agent, refused, 'confirm');
    expect(agent.snapshot.license.uses).toBe(uses);
    expect(agent.local).toMatchObject({ uses, pending: 0 });
    await agent.record('usage');
    const { unexpected } = await agent.answer(await agent.send('counter'), agent.says(uses + 1));
    expect(unexpected).toBeNull();
  });

  it.each([
    ['and was', 6],
    ['and was not', 5],
  ])('%s: the next one goes on from the count that is read', async (_, uses) => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await decide(agent, use, 'confirm');
    const next = await agent.record('usage');
    expect(agent.local.uses).toBe(7);
    agent.pass(minute);
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
    expect(await agent.read(agent.says(uses))).toEqual({ unexpected: null });
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(uses + 1));
    expect(agent.stateOf(next)).toBe('delivered');
  });

  it('is in the count already where a read had shown it', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'many', onUncertain: 'hold' });
    const held = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(6));
    expect(agent.stateOf(held)).toBe('held');
    await decide(agent, held, 'confirm');
    expect(agent.snapshot.license.uses).toBe(6);
  });

  it('is not taken for another one that is uncertain, which is sent', async () => {
    await using agent = await createAgent({ uses: 5 });
    const [first, confirmed] = [await agent.record('usage'), await agent.record('usage')];
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    await decide(agent, confirmed, 'confirm');
    agent.pass(minute);
    await agent.read(agent.says(6));
    expect(await agent.send('counter', { justRead: true })).toMatchObject({
      id: first,
      progress: { baseUses: 6 },
    });
  });

  it('moves no count when it is a disable', async () => {
    await using agent = await createAgent({ uses: 5 });
    const refused = await agent.record('disable');
    await agent.answer(await agent.send('state'), no('refused'));
    await decide(agent, refused, 'confirm');
    expect(agent.snapshot.license.uses).toBe(5);
  });
});
