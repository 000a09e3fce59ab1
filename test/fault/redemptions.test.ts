import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { storeOfProject } from '../support/app/engine.ts';
import { startDaemonProcess, type DaemonProcess } from '../support/process/daemon-process.ts';
import { httpClient, type HttpClient } from '../support/network/raw-http.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const listen = { tcp: '127.0.0.1:0', socket: false };
const orders = Array.from({ length: 200 }, (_, index) => `order-${index}`);
const cart = { code: 'FIFTY', items: [{ product_key: 'EDITOR', amount: 1999 }] };

function headersOf(directory: string): Record<string, string> {
  const token = readFileSync(join(directory, 'state', 'admin.token'), 'utf8').trim();
  return { authorization: `Bearer ${token}` };
}

/** An authority with a coupon that may be redeemed fifty times. */
async function startShop(directory: string, configuration: object): Promise<DaemonProcess> {
  const daemon = await startDaemonProcess(directory, configuration);
  await using http = httpClient({ tcp: daemon.tcp });
  const headers = headersOf(directory);
  await http.post('/admin/v1/products', { headers, json: { name: 'Editor', product_key: 'EDITOR' } });
  const terms = { code: 'FIFTY', coupon_type: 'multi', percent_off: 20, usage_limit: 50 };
  const made = await http.post('/api/v2/coupons', { headers, json: terms });
  expect(made.status).toBe(201);
  return daemon;
}

/** Redeems for all orders at the same time; returns the response to each, or null if there was none. */
async function redeemAll(
  http: HttpClient,
  headers: Record<string, string>,
  answered: (status: number) => void = () => {},
): Promise<Map<string, number | null>> {
  const statuses = new Map<string, number | null>();
  await Promise.all(
    orders.map(async (order) => {
      const answer = await http.post('/agent/v1/redemptions', { headers, json: { order, ...cart } }).then(
        ({ status }) => status,
        () => null,
      );
      statuses.set(order, answer);
      if (answer !== null) answered(answer);
    }),
  );
  return statuses;
}

function withStatus(statuses: ReadonlyMap<string, number | null>, ...wanted: readonly number[]): string[] {
  return [...statuses].filter(([, status]) => wanted.includes(status ?? 0)).map(([order]) => order);
}

async function redeemed(http: HttpClient, headers: Record<string, string>): Promise<number> {
  const { body } = await http.get('/agent/v1/coupons/1', { headers });
  return (body as { data: { redemptions: number } }).data.redemptions;
}

test('200 simultaneous orders redeem a coupon with a limit of 50 exactly fifty times', async () => {
  await using directory = temporaryDirectory();
  await using daemon = await startShop(directory.path, { listen, ...storeOfProject() });
  await using http = httpClient({ tcp: daemon.tcp });
  const headers = headersOf(directory.path);
  const statuses = await redeemAll(http, headers);
  expect(withStatus(statuses, 201)).toHaveLength(50);
  expect(withStatus(statuses, 409)).toHaveLength(150);
  expect(await redeemed(http, headers)).toBe(50);
  const again = await redeemAll(http, headers);
  expect(withStatus(again, 200).toSorted()).toEqual(withStatus(statuses, 201).toSorted());
  const [given = ''] = withStatus(statuses, 201);
  expect((await http.delete(`/agent/v1/redemptions/${given}`, { headers })).status).toBe(204);
  const [refused = ''] = withStatus(statuses, 409);
  const next = await http.post('/agent/v1/redemptions', { headers, json: { order: refused, ...cart } });
  expect([next.status, await redeemed(http, headers)]).toEqual([201, 50]);
});

test('kill -9 loses no redemption that was answered, and the limit still holds afterwards', async () => {
  await using directory = temporaryDirectory();
  const configuration = { listen, ...storeOfProject() };
  const daemon = await startShop(directory.path, configuration);
  const headers = headersOf(directory.path);
  let answers = 0;
  const killed = Promise.withResolvers<void>();
  let before: Map<string, number | null>;
  {
    await using http = httpClient({ tcp: daemon.tcp });
    before = await redeemAll(http, headers, () => {
      answers += 1;
      if (answers === 20) daemon.kill().then(killed.resolve, killed.reject);
    });
    await killed.promise;
  }
  const kept = withStatus(before, 201);
  expect(kept.length).toBeGreaterThan(0);
  expect([...before.values()]).toContain(null);
  await using successor = await startDaemonProcess(directory.path, configuration);
  await using http = httpClient({ tcp: successor.tcp });
  const after = await redeemAll(http, headers);
  expect(withStatus(after, 200, 201)).toHaveLength(50);
  expect(withStatus(after, 200)).toEqual(expect.arrayContaining(kept));
  expect(withStatus(after, 409)).toHaveLength(150);
  expect(await redeemed(http, headers)).toBe(50);
});
