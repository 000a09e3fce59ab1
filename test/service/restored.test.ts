import { describe, expect, it } from 'vitest';
import { givenAgent, lost, minute, valueOf } from '../support/service-stage.ts';

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

  it('a change that is not finished gets a fence of its own', async () => {
    await using agent = await givenAgent({ uses: 5 });
    await agent.record('usage');
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    expect(agent.dueIn('counter')).toBe(minute);
    expect(await agent.plan('counter')).toEqual({ step: 'none' });
  });
});
