import { readFileSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { startDaemonProcess, type DaemonProcess } from '../support/daemon-process.ts';
import {
  everyNth,
  loseAnswer,
  movesCounter,
  startPlainUpstream,
  type FaultPlan,
  type PlainUpstream,
} from '../support/plain-upstream.ts';
import { httpClient } from '../support/raw-http.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const secret = 'product-secret';
const keys = Array.from({ length: 20 }, (_, index) => `KEY-${index}`);
const usesOfEach = 25;

function configurationFor(upstream: PlainUpstream): object {
  return {
    listen: { tcp: '127.0.0.1:0' },
    upstream: { base_url: upstream.url, timeout: '2s', probe: '200ms' },
    products: [{ key: 'product', secret }],
    sync: {
      rate: '1000',
      lanes: '8',
      fence: '300ms',
      writers: 'single',
      backoff: { first: '50ms', max: '500ms' },
      breaker: { open: '200ms' },
    },
  };
}

async function upstreamWithKeys(): Promise<PlainUpstream> {
  const licenses = keys.map((licenseKey) => ({
    licenseKey,
    productKey: 'product',
    buyerEmail: 'buyer@example.com',
  }));
  return startPlainUpstream({ apiKey: 'api-key', products: [{ productKey: 'product', secret }], licenses });
}

async function verifyAll(agent: DaemonProcess): Promise<void> {
  await using client = httpClient(agent);
  for (const key of keys) {
    const { status } = await client.get(`/api/v2/license/verify?license_key=${key}`, {
      headers: { 'product-secret-key': secret },
    });
    expect(status).toBe(200);
  }
}

/** Records uses over the socket and over TCP in turns, and gives how many of each key were answered 200. */
async function useAll(agent: DaemonProcess): Promise<Map<string, number>> {
  await using tcp = httpClient(agent);
  await using socket = httpClient({ socket: agent.socket ?? '' });
  const answered = new Map<string, number>();
  const uses = keys.flatMap((key) => Array.from({ length: usesOfEach }, () => key));
  await Promise.all(
    uses.map(async (key, index) => {
      const client = index % 2 === 0 ? tcp : socket;
      const { status } = await client.put('/api/v2/license/usage', {
        headers: { 'product-secret-key': secret },
        form: { license_key: key },
      });
      if (status === 200) answered.set(key, (answered.get(key) ?? 0) + 1);
    }),
  );
  return answered;
}

async function drained(agent: DaemonProcess, directory: string): Promise<void> {
  const token = readFileSync(`${directory}/state/admin.token`, 'utf8').trim();
  await using client = httpClient(agent);
  await vi.waitFor(
    async () => {
      const { body } = await client.get('/statusz', { headers: { authorization: `Bearer ${token}` } });
      const { outbox } = body as { outbox: Record<string, number> };
      expect(outbox).toMatchObject({ pending: 0, in_flight: 0, uncertain: 0, inferred: 0, dead: 0 });
    },
    { timeout: 30_000, interval: 50 },
  );
}

const plans: [string, FaultPlan][] = [
  ['nothing else goes wrong', () => undefined],
  ['every tenth answer is lost after it was counted', everyNth(10, loseAnswer, movesCounter)],
];

for (const [circumstance, fault] of plans) {
  test(`500 uses recorded offline survive kill -9 and arrive once each, when ${circumstance}`, async () => {
    await using directory = temporaryDirectory();
    await using upstream = await upstreamWithKeys();
    let answered: Map<string, number>;
    {
      await using agent = await startDaemonProcess(directory.path, configurationFor(upstream));
      await verifyAll(agent);
      await upstream.stop();
      answered = await useAll(agent);
      await agent.kill();
    }
    expect([...answered.values()]).toEqual(keys.map(() => usesOfEach));
    upstream.fault = fault;
    await using agent = await startDaemonProcess(directory.path, configurationFor(upstream));
    await upstream.start();
    await drained(agent, directory.path);
    for (const key of keys) expect(upstream.countsOf(key).net, key).toBe(answered.get(key));
    for (const key of keys) expect(upstream.license(key).uses, key).toBe(usesOfEach);
  }, 60_000);
}
