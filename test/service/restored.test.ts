import { describe, expect, it } from 'vitest';
import { day, givenAgent, lost, minute, no, valueOf } from '../support/service-stage.ts';

describe('after a restore nothing is certain, whoever else writes', () => {
  it('a use that the lost past may have delivered and taken back is sent, and ends inferred', async () => {
    await using agent = await givenAgent({ uses: 5 }, { writers: 'single' });
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
    await using agent = await givenAgent({ uses: 5 }, { writers: 'single' });
    const use = await agent.record('usage');
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    agent.pass(minute);
    await agent.read(agent.says(6));
    expect(agent.stateOf(use)).toBe('inferred');
  });

  it('what was in doubt before stays so', async () => {
    await using agent = await givenAgent({ uses: 5 }, { writers: 'single' });
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), lost);
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    agent.pass(minute);
    await agent.read(agent.says(6));
    expect(agent.stateOf(use)).toBe('inferred');
  });

  it('what is recorded afterwards is as certain as ever', async () => {
    await using agent = await givenAgent({ uses: 5 }, { writers: 'single' });
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    await agent.read(agent.says(5));
    const use = await agent.record('usage');
    await agent.answer(await agent.send('counter'), agent.says(6));
    expect(agent.stateOf(use)).toBe('delivered');
  });

  it('changes of state come to rest one after the other, and the key is not read for ever', async () => {
    await using agent = await givenAgent({ uses: 5 });
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
    await using agent = await givenAgent({ uses: 5 }, { writers: 'single' });
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

  it('a disable that the lost past may have sent is not taken back as if it never was', async () => {
    await using agent = await givenAgent({ uses: 5 });
    const disable = await agent.record('disable');
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    agent.pass(minute);
    await agent.read(agent.says(5));
    const enable = await agent.record('enable');
    expect([disable, enable].map((id) => agent.stateOf(id))).toEqual(['pending', 'pending']);
  });

  it('a change that waited for long is read back after its fence', async () => {
    await using agent = await givenAgent({ uses: 5 });
    await agent.record('usage');
    await agent.answer(await agent.send('counter'), no('throttled', day));
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    expect(agent.dueIn('counter')).toBe(minute);
  });

  it('a change that is not finished gets a fence of its own', async () => {
    await using agent = await givenAgent({ uses: 5 });
    await agent.record('usage');
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    expect(agent.dueIn('counter')).toBe(minute);
    expect(await agent.plan('counter')).toEqual({ step: 'none' });
  });
});
