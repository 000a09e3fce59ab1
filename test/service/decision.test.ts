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

describe('decisions about an operation', () => {
  it('a refused operation can be retried', async () => {
    const { agent, dead } = await createDead();
    await using _ = agent;
    expect(await decide(agent, dead, 'retry')).toBe('pending');
    expect(agent.local).toEqual({ uses: 6, enabled: true, pending: 1 });
    expect(await agent.send('counter')).toMatchObject({ id: dead, attempts: 2 });
  });

  it('a refused operation can be dropped or confirmed', async () => {
    const { agent, dead } = await createDead();
    await using _ = agent;
    expect(await decide(agent, dead, 'drop')).toBe('dropped');
    const other = await createDead();
    await using __ = other.agent;
    expect(await decide(other.agent, other.dead, 'confirm')).toBe('delivered');
  });

  it('a waiting operation can be dropped, and the next operations go on', async () => {
    await using agent = await createAgent({ uses: 5 });
    const first = await agent.record('usage');
    const next = await agent.record('usage');
    expect(await decide(agent, first, 'drop')).toBe('dropped');
    expect(agent.local).toEqual({ uses: 6, enabled: true, pending: 1 });
    expect(await agent.send('counter')).toMatchObject({ id: next });
  });

  it('a decision that the state of the operation does not allow is refused', async () => {
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

  it('a held operation that is retried may count twice, says so, and ends inferred', async () => {
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

  it('an uncertain operation that is dropped keeps its details', async () => {
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
    'an uncertain operation that is %s, and was %s, does not make its count look like another writer',
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
    'after an uncertain operation is %s, a change of state within its reconcile delay does not replace the read before the next send',
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

  it('the next operation is not mistaken for a dropped uncertain operation that had arrived', async () => {
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

  it('operations are sent after an uncertain operation that had arrived was dropped before a restart', async () => {
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

  it('an uncertain operation that is dropped while the key is missing does not make its count look like another writer', async () => {
    await using agent = await createAgent({ uses: 5 });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    await decide(agent, use, 'drop');
    agent.pass(minute);
    await agent.read(no('missing'));
    agent.pass(second);
    expect(await agent.read(agent.says(6))).toEqual({ unexpected: null });
  });

  it('an enable that conflicts with a newer disable is sent if a person retries it', async () => {
    await using agent = await createAgent({ uses: 5 });
    agent.pass(25 * hour);
    const enable = await agent.record('enable');
    await agent.read(agent.says(5, { enabled: false }));
    expect(agent.stateOf(enable)).toBe('conflicted');
    await decide(agent, enable, 'retry');
    await agent.read(agent.says(5, { enabled: false }));
    expect(await agent.send('state', { justRead: true })).toMatchObject({ id: enable });
  });

  it('a use after a dropped enable does not wait for a read', async () => {
    await using agent = await createAgent({ uses: 5, enabled: false });
    const enable = await agent.record('enable');
    await agent.answer(await agent.send('state', { justRead: true }), lost);
    await decide(agent, enable, 'drop');
    await agent.record('usage');
    expect(await agent.plan('counter')).toMatchObject({ step: 'send' });
  });

  it('after a disable is dropped, the key has the state of the upstream', async () => {
    await using agent = await createAgent();
    const disable = await agent.record('disable');
    await agent.answer(await agent.send('state'), no('refused'));
    expect(agent.local).toEqual({ uses: 5, enabled: false, pending: 0 });
    await decide(agent, disable, 'drop');
    expect(agent.local).toEqual({ uses: 5, enabled: true, pending: 0 });
  });
});

describe('decisions during other operations', () => {
  it.each(['retry', 'drop', 'confirm'] as const)(
    'a decision keeps the reconcile delay of another operation: %s',
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

  it.each(['retry', 'drop'] as const)(
    'a decision does not affect an operation in flight: %s',
    async (decision) => {
      const { agent, dead } = await createDead();
      await using _ = agent;
      const flying = await agent.record('usage');
      const operation = await agent.send('counter');
      valueOf(await agent.writer.write('decideOperation', { operationId: dead, decision }));
      expect(agent.operation(flying).nextAt).toBeNull();
      expect(agent.store.operations.due(agent.monotonic, 10, () => true)).toEqual([]);
      await agent.answer(operation, agent.says(6));
      expect(agent.stateOf(flying)).toBe('delivered');
      expect(agent.dueIn('counter')).toBe(decision === 'retry' ? 0 : null);
    },
  );

  it('a decision sends nothing before the next uncertain operation is reconciled', async () => {
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

describe('an operation that a person confirms', () => {
  it.each([
    ['usage', 6],
    ['decrease', 4],
  ] as const)('a confirmed operation counts: %s', async (trigger, uses) => {
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
    ['was applied', 6],
    ['was not applied', 5],
  ])(
    'a use that a person confirms %s: the next operation is sent on the count that is read',
    async (_, uses) => {
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
    },
  );

  it('a confirmed operation is not counted again if a read had shown it', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'many', onUncertain: 'hold' });
    const held = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(6));
    expect(agent.stateOf(held)).toBe('held');
    await decide(agent, held, 'confirm');
    expect(agent.snapshot.license.uses).toBe(6);
  });

  it('a confirmed operation is not mistaken for another uncertain operation, which is sent', async () => {
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

  it('a confirmed disable does not change the count', async () => {
    await using agent = await createAgent({ uses: 5 });
    const refused = await agent.record('disable');
    await agent.answer(await agent.send('state'), no('refused'));
    await decide(agent, refused, 'confirm');
    expect(agent.snapshot.license.uses).toBe(5);
  });
});
