import { expect, it } from 'vitest';
import type { License } from '../../../../src/domain/license.ts';
import type { Applied } from '../../../../src/domain/outbox/outcome.ts';
import { createAgent, hour, type AgentHarness } from '../../../support/harness/service-harness.ts';

const off = { enabled: false };

function refreshIn({ snapshot, monotonic }: AgentHarness): number {
  return Number(snapshot.refreshAt) - monotonic;
}

/** The response of an agent above that has a pending change of the key. */
function pendingAbove(answer: Applied<License>): Applied<License> {
  return { ...answer, isPending: true };
}

it('an agent reads a key soon again while the agent above still has an enable of the key to deliver', async () => {
  await using agent = await createAgent(off);
  const enable = await agent.record('enable');
  const flying = await agent.send('state', { justRead: true });
  await agent.answer(flying, pendingAbove(agent.says(5, off)));
  expect(agent.stateOf(enable)).toBe('delivered');
  expect(refreshIn(agent)).toBe(0.6 * hour);
  agent.pass(0.6 * hour);
  await agent.read(pendingAbove(agent.says(5, off)));
  expect(refreshIn(agent)).toBe(0.6 * hour);
  await agent.read(agent.says(5));
  expect(agent.local).toEqual({ uses: 5, enabled: true, pending: 0 });
  expect(refreshIn(agent)).toBe(6 * hour);
});

it('an agent refreshes an enabled key at the usual time, whatever the agent above has to deliver', async () => {
  await using agent = await createAgent();
  await agent.read(pendingAbove(agent.says(5)));
  expect(refreshIn(agent)).toBe(6 * hour);
});
