import { expect, it } from 'vitest';
import { createAgent, hour, key } from '../../support/harness/service-harness.ts';

const undated = { createdAt: 0 };

it('a license for which the store has no date is as old as its first answer, also after later reads and changes', async () => {
  await using agent = await createAgent({ uses: 5, ...undated });
  const shown = (): number | undefined => agent.store.snapshots.get(key)?.license.createdAt;
  const first = shown();
  expect(first).toBe(agent.now);
  agent.pass(hour);
  await agent.read(agent.says(6, undated));
  expect(shown()).toBe(first);
  await agent.record('usage');
  await agent.answer(await agent.send('counter'), agent.says(7, undated));
  expect(shown()).toBe(first);
  await agent.read(agent.says(7, { createdAt: 4_711 }));
  expect(shown()).toBe(4_711);
});
