import { join } from 'node:path';
import { expect, test } from 'vitest';
import { payhipRefund, type SentStoreEvent } from '../features/webhooks/support/store-events.ts';
import {
  eventually,
  productKey,
  startAgentHarness,
  type Agent,
  type AgentHarness,
} from '../support/harness/agent-harness.ts';
import { httpClient, type HttpClient } from '../support/network/raw-http.ts';
import { latchkey } from '../support/process/command-line.ts';

const payhipKey = 'api-key-of-payhip';
const licenses = ['KEY-1', 'KEY-2', { licenseKey: 'KEY-3', buyerEmail: 'ada@example.com' }];

/** An agent in front of a store, which hears of refunds by Payhip's events only. */
function start(configuration: object = {}): Promise<AgentHarness> {
  return startAgentHarness({
    licenses,
    configuration: {
      upstream: { probe: '1h' },
      listen: { public: { address: '127.0.0.1:0' } },
      webhooks: { in: { shop: { from: 'payhip', secret: payhipKey } } },
      ...configuration,
    },
  });
}

async function send(client: HttpClient, { body, headers }: SentStoreEvent, name = 'shop'): Promise<number> {
  return (await client.post(`/hooks/v1/${name}`, { headers, body })).status;
}

function publicClient({ process }: Agent): HttpClient {
  const ready = process.lines.find(({ msg }) => msg === 'ready');
  return httpClient({ tcp: String(ready?.['public']) });
}

async function isEnabled(agent: Agent, licenseKey: string): Promise<unknown> {
  return ((await agent.verify(licenseKey)).body as { data: { enabled: boolean } }).data.enabled;
}

test('a refund at the store reaches the agent within seconds by an event, on loopback and on the public listener', async () => {
  await using harness = await start();
  const { agent, upstream } = harness;
  await using atPublic = publicClient(agent);
  upstream.refund('KEY-1');
  upstream.refund('KEY-3');
  expect(await isEnabled(agent, 'KEY-1')).toBe(true);
  expect(await send(agent.client, payhipRefund(payhipKey, { licenseKey: 'KEY-1' }))).toBe(200);
  expect(await send(atPublic, payhipRefund(payhipKey, { email: 'Ada@example.com', productKey }))).toBe(200);
  await eventually(async () => (await isEnabled(agent, 'KEY-1')) === false);
  await eventually(async () => (await isEnabled(agent, 'KEY-3')) === false);
  expect(await isEnabled(agent, 'KEY-2')).toBe(true);
});

test('status, doctor and metrics show the events of a store, and a wrong secret', async () => {
  await using harness = await start();
  const { agent } = harness;
  const config = join(harness.directory, 'config.yaml');
  expect((await latchkey('doctor', '--config', config)).out).toContain(
    'webhooks.in.shop has received no event since the start',
  );
  await send(agent.client, payhipRefund('another', { licenseKey: 'KEY-1' }));
  const refused = await latchkey('doctor', '--config', config);
  expect(refused.out).toMatch(
    /the last event for webhooks\.in\.shop \(payhip\) had a wrong signature, at 20/,
  );
  expect(refused.out).toContain(
    'compare its secret, and the store in its `from`, with the store that sends the events',
  );
  await send(agent.client, payhipRefund(payhipKey, { licenseKey: 'KEY-1' }));
  await send(agent.client, payhipRefund(payhipKey, { licenseKey: 'KEY-1' }), 'typo');
  expect(await agent.ask('/statusz')).toMatchObject({
    store_events: {
      senders: [{ name: 'shop', from: 'payhip', last_event_at: expect.any(String) as string }],
      waiting_reads: 1,
    },
  });
  expect((await latchkey('status', '--config', config)).out).toMatch(/events of shop +last /);
  const metrics = await agent.client.get('/metrics', { headers: agent.admin });
  for (const line of [
    'latchkey_webhook_events_received_total{webhook="shop",result="accepted"} 1',
    'latchkey_webhook_events_received_total{webhook="shop",result="wrong_signature"} 1',
    'latchkey_webhook_events_received_total{webhook="none",result="unknown_name"} 1',
    'latchkey_webhook_reads_waiting 1',
  ])
    expect(String(metrics.body)).toContain(line);
});

test('a reload applies a new secret of a store', async () => {
  await using harness = await start();
  const { agent, upstream } = harness;
  upstream.refund('KEY-1');
  await harness.reconfigure({ webhooks: { in: { shop: { from: 'payhip', secret: 'rotated' } } } });
  await send(agent.client, payhipRefund('rotated', { licenseKey: 'KEY-1' }));
  await eventually(async () => (await isEnabled(agent, 'KEY-1')) === false);
  expect(await isEnabled(agent, 'KEY-2')).toBe(true);
});

test('10,000 forged events over HTTP change no license, keep the rate of the upstream, and delay no caller', async () => {
  await using harness = await start({ sync: { rate: 20 } });
  const { agent, upstream } = harness;
  upstream.addLicense({ licenseKey: 'NEW-1', productKey, buyerEmail: 'new@example.com' });
  const startedAt = Date.now();
  const before = upstream.ledger.length;
  // Every second event has the constant signature of Payhip, which can leak.
  const sent = async (client: HttpClient): Promise<void> => {
    for (let count = 0; count < 500; count += 1) {
      const licenseKey = `KEY-${(count % 3) + 1}`;
      const secret = count % 2 === 0 ? payhipKey : 'forged';
      expect(await send(client, payhipRefund(secret, { licenseKey }))).toBe(200);
    }
  };
  await using clients = new AsyncDisposableStack();
  const flood = Promise.all(Array.from({ length: 20 }, () => sent(clients.use(publicClient(agent)))));
  // A known key is answered at once, and an unknown one is looked up.
  expect(await isEnabled(agent, 'KEY-2')).toBe(true);
  expect((await agent.verify('NEW-1')).status).toBe(200);
  await flood;
  for (const licenseKey of ['KEY-1', 'KEY-2', 'KEY-3']) expect(await isEnabled(agent, licenseKey)).toBe(true);
  const seconds = (Date.now() - startedAt) / 1000;
  const reads = upstream.ledger.slice(before).filter((entry) => entry.licenseKey !== 'NEW-1');
  // Each key is read at once and then every ten seconds.
  expect(reads.length).toBeLessThanOrEqual(3 * (1 + Math.ceil(seconds / 10)));
  expect(reads.every(({ kind }) => kind === 'verify')).toBe(true);
  const lines = agent.process.lines.filter(({ webhook }) => webhook === 'shop');
  expect(new Set(lines.map(({ result }) => result))).toEqual(new Set(['accepted', 'wrong_signature']));
  // A line a minute for each result.
  expect(lines.length).toBeLessThanOrEqual(2 * (1 + Math.ceil(seconds / 60)));
});
