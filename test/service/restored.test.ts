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

describe('after a restore nothing is certain, whoever else writes', () => {
  it('a use that the unknown history may have delivered and taken back is sent, and ends inferred', async () => {
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

  it('a count that explains it was perhaps moved by something that is not remembered', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'single' });
    const use = await agent.record('usage');
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    agent.pass(minute);
    await agent.read(agent.says(6));
    expect(agent.stateOf(use)).toBe('inferred');
  });

  it('what was uncertain before stays so', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'single' });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    agent.pass(minute);
    await agent.read(agent.says(6));
    expect(agent.stateOf(use)).toBe('inferred');
  });

  it('what is recorded afterwards is as certain as ever', async () => {
    await using agent = await createAgent({ uses: 5 }, { writers: 'single' });
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    agent.pass(minute);
    await agent.read(agent.says(5));
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), agent.says(6));
    expect(agent.stateOf(use)).toBe('delivered');
  });

  it('changes of state come to rest one after the other, and the key is not read for ever', async () => {
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

  it('what had died with its key may have come back with it, and gone up', async () => {
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

  it('a disable that the unknown history may have sent is not taken back as if it never was', async () => {
    await using agent = await createAgent({ uses: 5 });
    const disable = await agent.record('disable');
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    agent.pass(minute);
    await agent.read(agent.says(5));
    const enable = await agent.record('enable');
    expect([disable, enable].map((id) => agent.stateOf(id))).toEqual(['pending', 'pending']);
  });

  it('each change says why it is uncertain', async () => {
    await using agent = await createAgent({ uses: 5 });
    const sent = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    const waiting = await agent.record('usage');
    valueOf(await agent.writer.write('restore', {}));
    expect(agent.operation(sent).lastError).toBe('the answer was lost');
    expect(agent.operation(waiting).lastError).toContain('this store was restored');
  });

  it('a change that waited for long is read back after its reconcile delay', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('throttled', day));
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    expect(agent.dueIn('counter')).toBe(minute);
  });

  it('a disable whose own answer says so is delivered', async () => {
    await using agent = await createAgent({ uses: 5 });
    const disable = await agent.record('disable');
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    agent.pass(minute);
    await agent.read(agent.says(5));
    await agent.answer(await agent.send('state'), agent.says(5, { enabled: false }));
    expect(agent.stateOf(disable)).toBe('delivered');
  });

  it('a change that is not finished gets a reconcile delay of its own', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.record('usage');
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    expect(agent.dueIn('counter')).toBe(minute);
    expect(await agent.plan('counter')).toEqual({ step: 'none' });
  });
});

/** An agent that was restored a second ago, and knows of nothing that its unknown history had under way. */
async function createRestored(how: { uses?: number; enabled?: boolean } = {}): Promise<AgentHarness> {
  const agent = await createAgent({ uses: 5, ...how });
  valueOf(await agent.writer.write('restore', {}));
  await agent.restart();
  return agent;
}

describe('what an unknown history had under way is waited for', () => {
  it.each(['usage', 'disable'] as const)(
    'nothing is sent into its reconcile delay, also no new %s',
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

  it('no count that was read meanwhile is counted from, also of a key that was never seen before', async () => {
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

  it('no read made meanwhile reconciles an enable: an older disable may follow', async () => {
    await using agent = await createRestored({ enabled: false });
    const enable = await agent.record('enable');
    agent.pass(minute - 1);
    await agent.read(agent.says(5));
    expect(agent.stateOf(enable)).toBe('pending');
    agent.pass(1);
    await agent.read(agent.says(5));
    expect(agent.stateOf(enable)).toBe('delivered');
  });

  it('also after another start, and after a copy was started elsewhere', async () => {
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

  it('but no longer, and not again at the next start', async () => {
    await using agent = await createRestored();
    agent.pass(minute);
    await agent.writer.write('markTime', { mark: { at: agent.now, isConfirmed: true } });
    await agent.restart();
    await agent.record('usage');
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
  });

  it('but no longer, also where the clock was turned back before the next start', async () => {
    await using agent = await createRestored();
    agent.pass(minute);
    await agent.writer.write('markTime', { mark: { at: agent.now, isConfirmed: true } });
    agent.elapsed -= hour;
    await agent.restart();
    await agent.record('usage');
    expect(await agent.plan('counter')).toEqual({ step: 'read' });
  });
});
