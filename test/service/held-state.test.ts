import { describe, expect, it } from 'vitest';
import { createAgent, lost, minute, no, type AgentHarness } from '../support/harness/service-harness.ts';

const off = { enabled: false };

/** An agent whose enable lost its answer, and which found the key disabled then. */
async function createHeldEnable(): Promise<{ agent: AgentHarness; held: string }> {
  const agent = await createAgent(off);
  const held = await agent.record('enable');
  await agent.answer(await agent.send('state', { justRead: true }), lost);
  agent.pass(minute);
  await agent.read(agent.says(5, off));
  expect(agent.stateOf(held)).toBe('held');
  return { agent, held };
}

describe('an enable that is held', () => {
  it('ends inferred when the key is seen enabled: an agent above may have passed it on since', async () => {
    const { agent, held } = await createHeldEnable();
    await using _ = agent;
    await agent.read(agent.says(5, off));
    expect(agent.stateOf(held)).toBe('held');
    await agent.read(agent.says(5));
    expect(agent.stateOf(held)).toBe('inferred');
    expect(agent.local).toEqual({ uses: 5, enabled: true, pending: 0 });
  });

  it('stays held while a later disable may still be on its way', async () => {
    await using agent = await createAgent(off);
    const held = await agent.record('enable');
    await agent.answer(await agent.send('state', { justRead: true }), lost);
    agent.pass(minute);
    await agent.read(agent.says(5, off));
    await agent.record('disable');
    await agent.answer(await agent.send('state'), lost);
    await agent.read(agent.says(5));
    expect(agent.stateOf(held)).toBe('held');
  });

  it('ends inferred when a later enable is delivered', async () => {
    const { agent, held } = await createHeldEnable();
    await using _ = agent;
    await agent.record('enable');
    await agent.answer(await agent.send('state', { justRead: true }), agent.says(5));
    expect(agent.stateOf(held)).toBe('inferred');
    expect(agent.local).toEqual({ uses: 5, enabled: true, pending: 0 });
  });

  it('ends inferred when a later disable is delivered', async () => {
    const { agent, held } = await createHeldEnable();
    await using _ = agent;
    await agent.record('disable');
    await agent.answer(await agent.send('state'), agent.says(5, off));
    expect(agent.stateOf(held)).toBe('inferred');
    expect(agent.local).toEqual({ uses: 5, enabled: false, pending: 0 });
  });

  it('stays held where a later disable was not delivered', async () => {
    const { agent, held } = await createHeldEnable();
    await using _ = agent;
    await agent.record('disable');
    await agent.answer(await agent.send('state'), no('refused'));
    expect(agent.stateOf(held)).toBe('held');
  });
});

it('a disable that is held ends inferred when a later disable is delivered', async () => {
  await using agent = await createAgent();
  const held = await agent.record('disable');
  await agent.answer(await agent.send('state'), lost);
  agent.pass(minute);
  await agent.answer(await agent.send('state'), no('refused'));
  expect(agent.stateOf(held)).toBe('held');
  await agent.record('disable');
  await agent.answer(await agent.send('state'), agent.says(5, off));
  expect(agent.stateOf(held)).toBe('inferred');
});
