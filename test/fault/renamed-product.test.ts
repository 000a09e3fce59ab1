import { expect, test } from 'vitest';
import {
  codeOf,
  dataOf,
  eventually,
  productKey,
  secret,
  startHarness,
  type AgentHarness,
} from '../support/harness/agent-harness.ts';
import { every, holdResponse, serverError, type Chooses } from '../support/harness/plain-upstream.ts';

const renamed = { products: [{ key: 'renamed', secret }] };
const otherSecret = 'secret-of-the-other-product';

/**
 * Starts a read of a license key, renames its product before the upstream answers, and then lets the upstream
 * answer.
 */
async function renameWhileReading<Answer>(
  harness: AgentHarness,
  key: string,
  read: () => Promise<Answer>,
): Promise<Answer> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const isRead: Chooses = ({ kind, licenseKey }) => kind === 'verify' && licenseKey === key;
  const held = (): boolean =>
    harness.upstream.ledger.some((entry) => isRead(entry) && entry.answered === 'waiting');
  harness.upstream.fault = every(holdResponse(promise), isRead);
  const reading = read();
  await eventually(held);
  await harness.reconfigure(renamed);
  harness.upstream.fault = () => undefined;
  resolve();
  return await reading;
}

test('a license key that is read while its product is renamed is answered at once and later', async () => {
  await using harness = await startHarness({ licenses: ['NEW'] });
  const agent = await harness.startAgent();
  const first = await renameWhileReading(harness, 'NEW', () => agent.verify('NEW'));
  expect(first.status).toBe(200);
  expect((await agent.verify('NEW')).status).toBe(200);
  expect((await agent.change('usage', 'NEW', { prefer: 'wait=30' })).status).toBe(200);
  const restarted = await harness.startAgent();
  expect((await restarted.verify('NEW')).status).toBe(200);
});

test('uses that wait for a read of their license key are kept when the product is renamed during the read', async () => {
  await using harness = await startHarness({ licenses: ['OLD'] });
  await (await harness.startAgent()).learn(['OLD']);
  await harness.agent.ask('/admin/v1/sync/pause', 'post');
  await harness.agent.change('usage', 'OLD');
  // After a start the agent reads the key first.
  const agent = await harness.startAgent();
  await renameWhileReading(harness, 'OLD', () => agent.ask('/admin/v1/sync/resume', 'post'));
  await agent.atRest();
  expect(harness.upstream.countsOf('OLD').net).toBe(1);
  expect((await agent.verify('OLD')).status).toBe(200);
});

test('license keys that wait to be fetched are fetched after their product was renamed', async () => {
  await using harness = await startHarness({ licenses: ['A', 'B'] });
  const agent = await harness.startAgent();
  await agent.ask('/admin/v1/sync/pause', 'post');
  const json = { license_keys: ['A', 'B'], product_key: productKey };
  const queued = await agent.client.post('/admin/v1/preload', { headers: agent.admin, json });
  expect(dataOf(queued)).toEqual({ queued: 2 });
  await harness.reconfigure(renamed);
  await agent.ask('/admin/v1/sync/resume', 'post');
  await eventually(async () => {
    const { preload } = (await agent.ask('/statusz')) as { preload: { done: number } };
    return preload.done === 2;
  });
  expect((await agent.verify('A')).status).toBe(200);
});

test('products that swap their keys keep their license keys and tokens apart', async () => {
  await using harness = await startHarness({
    licenses: ['MINE', { licenseKey: 'THEIRS', productKey: 'other' }],
    upstream: {
      products: [
        { productKey, secret },
        { productKey: 'other', secret: otherSecret },
      ],
    },
    configuration: {
      products: [
        { key: productKey, secret },
        { key: 'other', secret: otherSecret },
      ],
    },
  });
  const agent = await harness.startAgent();
  const asOther = { 'service-api-key': [], 'product-secret-key': otherSecret };
  expect((await agent.verify('MINE')).status).toBe(200);
  expect((await agent.verify('THEIRS', asOther)).status).toBe(200);
  const json = { scopes: ['verify'], product_key: productKey };
  const issued = await agent.client.post('/admin/v1/tokens', { headers: agent.admin, json });
  const byToken = {
    'service-api-key': [],
    'product-secret-key': [],
    authorization: `Bearer ${String(dataOf(issued)['token'])}`,
  };
  await harness.reconfigure({
    products: [
      { key: 'other', secret },
      { key: productKey, secret: otherSecret },
    ],
  });
  expect((await agent.verify('MINE')).status).toBe(200);
  expect((await agent.verify('MINE', byToken)).status).toBe(200);
  expect((await agent.verify('THEIRS', asOther)).status).toBe(200);
  expect(codeOf(await agent.verify('THEIRS', byToken))).toBe('license_not_found');
  expect(codeOf(await agent.verify('MINE', asOther))).toBe('license_not_found');
  const { tokens } = dataOf(await agent.client.get('/admin/v1/tokens', { headers: agent.admin })) as {
    tokens: { product_key: string | null }[];
  };
  // A token stays with its product, and is listed under the product's current key.
  expect(tokens.map(({ product_key }) => product_key)).toContain('other');
});

test('a product that is removed and added under another key keeps its license keys and its changes', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  await harness.reconfigure({ products: [{ key: 'another', secret: otherSecret }] });
  await harness.reconfigure({ products: [] });
  expect(codeOf(await agent.verify('KEY'))).toBe('credentials_invalid');
  await harness.reconfigure(renamed);
  // The agent does not need to read the key again.
  harness.upstream.fault = every(serverError(503));
  expect((await agent.verify('KEY')).status).toBe(200);
});

test('a use that is repeated under its Idempotency-Key after its product was renamed counts once', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  const once = { 'idempotency-key': 'order-1' };
  const { promise, resolve } = Promise.withResolvers<void>();
  harness.upstream.fault = every(holdResponse(promise), ({ kind }) => kind === 'usage');
  const waiting = agent.change('usage', 'KEY', { ...once, prefer: 'wait=30' });
  await eventually(() => harness.upstream.countsOf('KEY').net === 1);
  await harness.reconfigure(renamed);
  resolve();
  const first = await waiting;
  const again = await agent.change('usage', 'KEY', once);
  expect([first.status, again.status]).toEqual([200, 200]);
  expect(again.body).toEqual(first.body);
  await agent.atRest();
  expect(harness.upstream.countsOf('KEY').net).toBe(1);
});
