import { expect, test } from 'vitest';
import { openReceiver, type Receiver } from '../features/webhooks/support/webhooks.ts';
import { eventually, startHarness, type Agent } from '../support/harness/agent-harness.ts';

const keys = Array.from({ length: 30 }, (_, index) => `KEY-${index}`);
const webhooks = { out: { allow: ['127.0.0.0/8'] } };

async function addWebhook(agent: Agent, url: string): Promise<void> {
  const json = { url, events: ['license.disabled'] };
  const { status } = await agent.client.post('/admin/v1/webhooks', { headers: agent.admin, json });
  expect(status).toBe(201);
}

/** The ids under which the event of each license key arrived. */
function idsOf({ received }: Receiver): Map<string, Set<string>> {
  const ids = new Map<string, Set<string>>();
  for (const { headers, body } of received) {
    const { data } = JSON.parse(body) as { data: { license_key: string } };
    const known = ids.get(data.license_key) ?? new Set();
    ids.set(data.license_key, known.add(headers['webhook-id'] ?? ''));
  }
  return ids;
}

test('each event of a change arrives at least once, under one id, although the agent is killed between change and delivery', async () => {
  await using receiver = await openReceiver();
  await using harness = await startHarness({ licenses: keys });
  let agent = await harness.startAgent({ webhooks });
  await agent.learn(keys);
  await addWebhook(agent, receiver.url);
  // The kill hits changes whose events wait, one that is under way, and one whose answer was not recorded.
  receiver.answer = (response) => setTimeout(() => response.writeHead(204).end(), 20);
  for (let round = 0; round < 3; round += 1) {
    for (const key of keys.slice(round * 10, round * 10 + 10)) {
      expect((await agent.change('disable', key)).status).toBe(200);
    }
    await receiver.until(round + 1);
    await agent.kill();
    agent = await harness.startAgent({ webhooks });
  }
  await eventually(() => idsOf(receiver).size === keys.length);
  expect([...idsOf(receiver).keys()].toSorted()).toEqual(keys.toSorted());
  for (const ids of idsOf(receiver).values()) expect(ids.size).toBe(1);
});
