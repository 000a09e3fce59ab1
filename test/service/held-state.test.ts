import { describe, expect, it } from 'vitest';
import { createAgent, lost, minute, no, type AgentHarness } from '../support/harness/service-harness.ts';

const off = { enabled: false };

/** An agent whose enable lost its response and that then read the key as disabled. */
async function createHeldEnable(): Promise<{ agent: AgentHarness; held: string }> {
  const agent = await createAgent(off);
  const held = await agent.record('enable');
  await agent.answer(await agent.send('state', { justRead: true }), lost);
  agent.pass(minute);
  await agent.read(agent.says(5, off));
  expect(agent.stateOf(held)).toBe('held');
  return { agent, held };
}

describe('a held enable', () => {
  it('a held enable ends inferred when the key is seen enabled, because an agent above may have delivered it', async () => {
    const { agent, held } = await createHeldEnable();
    await using _ = agent;
    await agent.read(agent.says(5, off));
    expect(agent.stateOf(held)).toBe('held');
    await agent.read(agent.says(5));
    expect(agent.stateOf(held)).toBe('inferred');
    expect(agent.local).toEqual({ uses: 5, enabled: true, pending: 0 });
  });

  it('a held enable stays held while a later disable may still arrive', async () => {
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

  it('a held enable ends inferred when a later enable is delivered', async () => {
    const { agent, held } = await createHeldEnable();
    await using _ = agent;
    await agent.record('enable');
    await agent.answer(await agent.send('state', { justRead: true }), agent.says(5));
    expect(agent.stateOf(held)).toBe('inferred');
    expect(agent.local).toEqual({ uses: 5, enabled: true, pending: 0 });
  });

  it('a held enable ends inferred when a later disable is delivered', async () => {
    const { agent, held } = await createHeldEnable();
    await using _ = agent;
    await agent.record('disable');
    await agent.answer(await agent.send('state'), agent.says(5, off));
    expect(agent.stateOf(held)).toBe('inferred');
    expect(agent.local).toEqual({ uses: 5, enabled: false, pending: 0 });
  });

  it('a held enable stays held if a later disable was not delivered', async () => {
    const { agent, held } = await createHeldEnable();
    await using _ = agent;
    await agent.record('disable');
    await agent.answer(await agent.send('state'), no('refused'));
    expect(agent.stateOf(held)).toBe('held');
  });
});

it('a held disable ends inferred when a later disable is delivered', async () => {
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
