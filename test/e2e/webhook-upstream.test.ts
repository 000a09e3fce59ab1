import { expect, test } from 'vitest';
import { openReceiver } from '../features/webhooks/support/webhooks.ts';
import { eventually, startHarness } from '../support/harness/agent-harness.ts';

test('an endpoint gets the next outage as an event although the end of the last one came while there was no endpoint', async () => {
  await using receiver = await openReceiver();
  await using harness = await startHarness({
    licenses: ['KEY'],
    configuration: {
      webhooks: { out: { allow: ['127.0.0.0/8'] } },
      upstream: { timeout: '1s', probe: '1s' },
    },
  });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  const add = async (): Promise<string> => {
    const { status, body } = await agent.client.post('/admin/v1/webhooks', {
      headers: agent.admin,
      json: { url: receiver.url, events: ['upstream.down', 'upstream.up'] },
    });
    expect(status).toBe(201);
    return (body as { data: { webhook_id: string } }).data.webhook_id;
  };
  const become = async (state: 'up' | 'down'): Promise<void> => {
    await harness.proxy.become({ kind: state === 'up' ? 'pass' : 'refuse' });
    await eventually(async () => (await agent.status()).upstream.state === state);
  };
  const id = await add();
  await become('down');
  await receiver.until(1);
  await agent.client.delete(`/admin/v1/webhooks/${id}`, { headers: agent.admin });
  await become('up');
  await add();
  await become('down');
  await become('up');
  const types = () => receiver.received.map(({ body }) => (JSON.parse(body) as { type: string }).type);
  await expect.poll(() => types().at(-1)).toBe('upstream.up');
  expect(types()).toEqual(['upstream.down', 'upstream.down', 'upstream.up']);
});
