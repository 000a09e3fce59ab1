import { describe, expect, it } from 'vitest';
import {
  AgentHarness,
  day,
  createAgent,
  hour,
  lost,
  minute,
  no,
  second,
  valueOf,
} from '../support/harness/service-harness.ts';

describe('after a restore', () => {
  it('after a restore, a use that may have been delivered and undone before is sent and ends inferred', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'single' });
    const use = await agent.record('usage');
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    agent.pass(minute);
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
    await agent.read(agent.says(5));
    await agent.answer(await agent.send('counter', { justRead: true }), agent.says(6));
    expect(agent.stateOf(use)).toBe('inferred');
  });

  it('after a restore, a count that explains an operation may have been moved by an unknown operation', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'single' });
    const use = await agent.record('usage');
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    agent.pass(minute);
    await agent.read(agent.says(6));
    expect(agent.stateOf(use)).toBe('inferred');
  });

  it('after a restore, uncertain operations stay uncertain', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'single' });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    agent.pass(minute);
    await agent.read(agent.says(6));
    expect(agent.stateOf(use)).toBe('inferred');
  });

  it('after a restore, new operations are as certain as usual', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'single' });
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    agent.pass(minute);
    await agent.read(agent.says(5));
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), agent.says(6));
    expect(agent.stateOf(use)).toBe('delivered');
  });

  it('after a restore, changes of state finish one after the other, and the key is not read for ever', async () => {
    await using agent = await createAgent({ uses: 5 });
    const disable = await agent.record('disable');
    await agent.answer(await agent.send('state'), lost);
    const enable = await agent.record('enable');
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    agent.pass(minute);
    expect(await agent.plan('state')).toEqual({ step: 'read' });
    await agent.read(agent.says(5));
    const sent = await agent.send('state', { justRead: true });
    expect(sent.id).toBe(disable);
    await agent.answer(sent, agent.says(5, { enabled: false }));
    expect(await agent.plan('state')).toEqual({ step: 'read' });
    await agent.read(agent.says(5, { enabled: false }));
    expect(agent.operation(enable).progress).toMatchObject({ state: 'uncertain', held: true });
  });

  it('after a restore, operations that died with their key may have been reopened and sent', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'single' });
    const use = await agent.record('usage');
    await agent.read(no('missing'));
    agent.pass(day);
    await agent.read(no('missing'));
    expect(agent.stateOf(use)).toBe('dead');
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    agent.pass(minute);
    await agent.read(agent.says(6));
    expect(agent.stateOf(use)).toBe('inferred');
  });

  it('after a restore, a disable that may have been sent is not undone as if it was never sent', async () => {
    await using agent = await createAgent({ uses: 5 });
    const disable = await agent.record('disable');
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    agent.pass(minute);
    await agent.read(agent.says(5));
    const enable = await agent.record('enable');
    expect([disable, enable].map((id) => agent.stateOf(id))).toEqual(['pending', 'pending']);
  });

  it('after a restore, each change shows why it is uncertain', async () => {
    await using agent = await createAgent({ uses: 5 });
    const sent = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    const waiting = await agent.record('usage');
    valueOf(await agent.writer.write('restore', {}));
    expect(agent.operation(sent).lastError).toBe('the answer was lost');
    expect(agent.operation(waiting).lastError).toContain('this store was restored');
  });

  it('after a restore, a change that has waited for long is read back after its reconcile delay', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('throttled', day));
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    expect(agent.dueIn('counter')).toBe(minute);
  });

  it('after a restore, a disable is delivered if its own response says so', async () => {
    await using agent = await createAgent({ uses: 5 });
    const disable = await agent.record('disable');
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    agent.pass(minute);
    await agent.read(agent.says(5));
    await agent.answer(await agent.send('state'), agent.says(5, { enabled: false }));
    expect(agent.stateOf(disable)).toBe('delivered');
  });

  it('after a restore, an unfinished change gets its own reconcile delay', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    expect(agent.dueIn('counter')).toBe(minute);
    expect(await agent.plan('counter')).toEqual({ step: 'none' });
  });
});

/** An agent that was restored a second ago. */
async function createRestored(how: { uses?: number; enabled?: boolean } = {}): Promise<AgentHarness> {
  const agent = await createAgent({ uses: 5, ...how });
  valueOf(await agent.writer.write('restore', {}));
  await agent.restart();
  return agent;
}

describe('the reconcile delay of an unknown history', () => {
  it.each(['usage', 'disable'] as const)(
    'nothing is sent during the reconcile delay of an unknown history, not even a new %s',
    async (trigger) => {
      await using agent = await createRestored();
      await agent.record(trigger);
      const queue = trigger === 'usage' ? 'counter' : 'state';
      expect(await agent.plan(queue)).toEqual({ step: 'none' });
      valueOf(await agent.writer.write('retryNow', {}));
      expect(await agent.plan(queue)).toEqual({ step: 'none' });
      expect(agent.dueIn(queue)).toBe(minute);
      agent.pass(minute);
      expect((await agent.plan(queue)).step).not.toBe('none');
    },
  );

  it('no count that is read during the reconcile delay of an unknown history is a base, even of a new key', async () => {
    await using agent = new AgentHarness();
    await agent.start();
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    agent.pass(minute - 1);
    await agent.read(agent.says(5));
    await agent.record('usage');
    agent.pass(1);
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
    await agent.read(agent.says(6));
    expect(await agent.send('counter')).toMatchObject({ progress: { baseUses: 6 } });
  });

  it('no read during the reconcile delay of an unknown history reconciles an enable, because an older disable may follow', async () => {
    await using agent = await createRestored({ enabled: false });
    const enable = await agent.record('enable');
    agent.pass(minute - 1);
    await agent.read(agent.says(5));
    expect(agent.stateOf(enable)).toBe('pending');
    agent.pass(1);
    await agent.read(agent.says(5));
    expect(agent.stateOf(enable)).toBe('delivered');
  });

  it('the reconcile delay of an unknown history lasts across another start and a start of a copy elsewhere', async () => {
    await using agent = await createRestored();
    agent.pass(30 * second);
    await agent.restart();
    await agent.record('usage');
    await agent.plan('counter');
    expect(agent.dueIn('counter')).toBe(minute);
    await using copy = await createAgent({ uses: 5 });
    copy.place = 'elsewhere';
    await copy.restart();
    await copy.record('usage');
    await copy.plan('counter');
    expect(copy.dueIn('counter')).toBe(minute);
  });

  it('the reconcile delay of an unknown history ends, and does not start again at the next start', async () => {
    await using agent = await createRestored();
    agent.pass(minute);
    await agent.writer.write('markTime', { mark: { at: agent.now, isConfirmed: true } });
    await agent.restart();
    await agent.record('usage');
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
  });

  it('the reconcile delay of an unknown history ends even if the clock was set back before the next start', async () => {
    await using agent = await createRestored();
    agent.pass(minute);
    await agent.writer.write('markTime', { mark: { at: agent.now, isConfirmed: true } });
    agent.monotonic -= hour;
    await agent.restart();
    await agent.record('usage');
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
  });
});
