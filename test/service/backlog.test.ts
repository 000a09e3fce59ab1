import { describe, expect, it, vi } from 'vitest';
import { givenAgent, lost, minute } from '../support/stage/service-stage.ts';

describe('a key with a long queue', () => {
  it('is planned, answered and read without looking at each of its operations', async () => {
    await using agent = await givenAgent({ uses: 5 }, { writers: 'many', onDoubt: 'hold' });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    agent.pass(minute);
    await agent.read(agent.says(6));
    for (let more = 0; more < 50; more += 1) await agent.record('usage');
    const { operations } = agent.store;
    const whole = [vi.spyOn(operations, 'shown'), vi.spyOn(operations, 'lane')];
    const write = async (): Promise<void> => {
      const step = await agent.writer.write('planStep', {
        subject: 'KEY-1',
        lane: 'counter',
        justRead: false,
      });
      if (!step.ok || step.value.step !== 'send') throw new Error('nothing to send');
      const { policy, steady } = agent;
      await agent.writer.write('recordAnswer', {
        operationId: step.value.operation.id,
        outcome: agent.says(9),
        overlapped: false,
        policy,
      });
      await agent.writer.write('recordRead', {
        licenseKey: 'KEY-1',
        productKey: 'press',
        outcome: agent.says(12),
        sentAt: steady,
        isMissingBelieved: true,
        policy,
      });
    };
    await write();
    expect(whole.map((spy) => spy.mock.calls.length)).toEqual([0, 0]);
    for (const spy of whole) spy.mockRestore();
    agent.check();
    expect(agent.local.pending).toBe(50);
  });

  it('shows the same as its operations one by one, also where the count touches 0', async () => {
    await using agent = await givenAgent({ uses: 1 });
    for (const trigger of ['decrease', 'decrease', 'usage', 'decrease', 'usage'] as const) {
      await agent.record(trigger);
      agent.check();
    }
    expect(agent.local).toEqual({ uses: 1, enabled: true, pending: 5 });
    await agent.read(agent.says(3));
    expect(agent.local).toEqual({ uses: 2, enabled: true, pending: 5 });
  });
});
