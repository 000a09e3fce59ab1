import { describe, expect, it, vi } from 'vitest';
import type { License } from '../../src/domain/license.ts';
import type { Outcome } from '../../src/domain/outbox/outcome.ts';
import { createAgent, lost, minute, no, type AgentHarness } from '../support/harness/service-harness.ts';

/** Sends the next operation and records its response, without the checks of the harness. */
async function deliverNext({ writer, policy }: AgentHarness, outcome: Outcome<License>): Promise<void> {
  const step = await writer.write('planStep', { subject: 'KEY-1', queue: 'counter', justRead: false });
  if (!step.ok || step.value.step !== 'send') throw new Error('nothing to send');
  const operationId = step.value.operation.id;
  await writer.write('recordResponse', { operationId, outcome, overlapped: false, policy });
}

describe('a key with a long queue', () => {
  it('a key with a long queue is planned, answered and read without reading each operation', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'many', onUncertain: 'hold' });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(6));
    for (let more = 0; more < 50; more += 1) await agent.record('usage');
    const { operations } = agent.store;
    const whole = [vi.spyOn(operations, 'visibleToCallers'), vi.spyOn(operations, 'queue')];
    await deliverNext(agent, agent.says(9));
    const { policy, monotonic } = agent;
    await agent.writer.write('recordRead', {
      licenseKey: 'KEY-1',
      productId: 'press',
      outcome: agent.says(12),
      sentAt: monotonic,
      isMissingConfirmed: true,
      policy,
    });
    expect(whole.map((spy) => spy.mock.calls.length)).toEqual([0, 0]);
    for (const spy of whole) spy.mockRestore();
    agent.check();
    expect(agent.local.pending).toBe(50);
  });

  it('a key whose uses are counted and undone by turns is delivered without reading each operation', async () => {
    await using agent = await createAgent({ uses: 1 });
    for (let pair = 0; pair < 20; pair += 1) {
      await agent.record('usage');
      await agent.record('decrease');
    }
    const { operations } = agent.store;
    const whole = [vi.spyOn(operations, 'visibleToCallers'), vi.spyOn(operations, 'queue')];
    for (let pair = 0; pair < 10; pair += 1) {
      await deliverNext(agent, agent.says(2));
      await deliverNext(agent, agent.says(1));
    }
    expect(whole.map((spy) => spy.mock.calls.length)).toEqual([0, 0]);
    for (const spy of whole) spy.mockRestore();
    agent.check();
    expect(agent.local).toEqual({ uses: 1, enabled: true, pending: 20 });
  });

  it('a key shows the same as its operations one by one when an operation behind a retried one is answered', async () => {
    await using agent = await createAgent({ uses: 1 });
    const operationId = await agent.record('decrease');
    await agent.answer(await agent.send('counter'), no('refused'));
    await agent.read(agent.says(0));
    await agent.record('usage');
    const flying = await agent.send('counter');
    await agent.writer.write('decideOperation', { operationId, decision: 'retry' });
    await agent.answer(flying, agent.says(0));
    expect(agent.local).toEqual({ uses: 0, enabled: true, pending: 1 });
  });

  it('a key shows the same as its operations one by one, even if the count touches 0', async () => {
    await using agent = await createAgent({ uses: 1 });
    for (const trigger of ['decrease', 'decrease', 'usage', 'decrease', 'usage'] as const) {
      await agent.record(trigger);
      agent.check();
    }
    expect(agent.local).toEqual({ uses: 1, enabled: true, pending: 5 });
    await agent.read(agent.says(3));
    expect(agent.local).toEqual({ uses: 2, enabled: true, pending: 5 });
  });
});
