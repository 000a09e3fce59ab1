import { describe, expect, it } from 'vitest';
import { createAgent, hour, minute, valueOf } from '../../support/harness/service-harness.ts';

describe('an enable after a disable of this agent', () => {
  it('an enable is sent after a disable that was perhaps sent before a restore, although no attempt is on record', async () => {
    await using agent = await createAgent({ uses: 5 });
    const disable = await agent.record('disable');
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    agent.pass(hour);
    await agent.read(agent.says(5));
    expect(agent.operation(disable)).toMatchObject({
      attempts: 0,
      progress: { state: 'pending', maybeApplied: true, unanswered: false },
    });
    agent.pass(minute);
    const enable = await agent.record('enable');
    expect([agent.stateOf(disable), agent.stateOf(enable)]).toEqual(['pending', 'pending']);
    expect(agent.local.enabled).toBe(false);
  });
});
