import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  leaveAgent,
  leaveAuthority,
  leftOperations,
  leftSecrets as secrets,
} from '../support/builders/first-schema.ts';
import { httpClient } from '../support/network/raw-http.ts';
import { startDaemonProcess } from '../support/process/daemon-process.ts';
import { dataOf, productKey, startHarness } from '../support/harness/agent-harness.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/* A state that was left by a program of the first schema, in a real process of the present one. */

/** Of which the upstream counted the use whose answer was lost. */
const arrived = new Set(['KEY-arrived', 'KEY-doubted', 'KEY-held']);
const keys = [...new Set(leftOperations.map(({ subject }) => subject))].filter((key) => key !== 'save');

test('an agent that starts on the first schema sends its waiting changes once and keeps the rest', async () => {
  const licenses = keys.map((licenseKey) => ({ licenseKey, uses: arrived.has(licenseKey) ? 4 : 3 }));
  await using harness = await startHarness({ licenses });
  leaveAgent(join(harness.directory, 'state'), productKey, Date.now());
  const { upstream } = harness;
  await harness.proxy.become({ kind: 'refuse' });
  const agent = await harness.startAgent();
  const migrated = agent.process.lines.filter(({ msg }) => msg?.startsWith('the store is being migrated'));
  expect(migrated).toMatchObject([{ file: join(harness.directory, 'state', 'latchkey.db.schema-1') }]);
  const { instance, outbox } = await agent.status();
  expect([instance, outbox.pending + outbox.in_flight]).toEqual(['agent-1', 5]);
  expect(outbox).toMatchObject({ uncertain: 4, held: 1, dead: 2 });
  expect(dataOf(await agent.verify('KEY-waiting'))).toMatchObject({ uses: 5, enabled: true });
  expect(dataOf(await agent.verify('KEY-ended'))).toMatchObject({ uses: 3, enabled: false });
  const repeat = (): Promise<unknown> =>
    agent
      .change('usage', 'KEY-waiting', { 'idempotency-key': 'first' })
      .then((answer) => dataOf(answer)['uses']);
  expect(await repeat()).toBe(4);
  const headers = { ...agent.admin, 'idempotency-key': 'dropped' };
  const given = await agent.client.post('/admin/v1/outbox/operation-dropped/drop', { headers });
  expect(dataOf(given)).toMatchObject({ state: 'dropped', request_id: null, credential: null });

  await harness.proxy.become({ kind: 'pass' });
  // It was answered 404 for a day: whoever asks for it now learns that it is known again.
  await agent.learn(['KEY-missing']);
  await agent.atRest();
  const uses = keys.map((key) => [key, upstream.license(key).uses]);
  expect(Object.fromEntries(uses)).toEqual({
    'KEY-waiting': 5,
    'KEY-arrived': 4,
    'KEY-lost': 4,
    'KEY-doubted': 5,
    'KEY-held': 4,
    'KEY-refused': 3,
    'KEY-missing': 4,
    'KEY-ended': 3,
  });
  expect(upstream.license('KEY-ended').enabled).toBe(false);
  expect(upstream.coupons.map(({ code }) => code)).toEqual(['SAVE']);
  const left = (await agent.operations()).map(({ license_key: key, state, held }) => [key, state, held]);
  expect(left).toEqual([
    ['KEY-held', 'uncertain', true],
    ['KEY-refused', 'dead', false],
  ]);
  expect(await repeat()).toBe(4);
  expect(upstream.license('KEY-waiting').uses).toBe(5);
});

test('an authority that starts on the first schema keeps its sales and credentials', async () => {
  await using directory = temporaryDirectory();
  leaveAuthority(join(directory.path, 'state'), Date.now());
  await using daemon = await startDaemonProcess(directory.path, { listen: { tcp: '127.0.0.1:0' } });
  await using client = httpClient(daemon);
  const admin = { headers: { authorization: `Bearer ${secrets.token}` } };
  const ask = async (path: string): Promise<unknown> => (await client.get(`/admin/v1/${path}`, admin)).body;
  expect(await ask('licenses?buyer_email=key-2@example.com')).toMatchObject({
    data: { licenses: [{ license_key: 'KEY-2', enabled: false, purchase_id: 'purchase-KEY-2' }] },
  });
  expect(await ask('collections/all')).toMatchObject({ data: { product_keys: ['press'] } });
  expect(await ask('audit/1')).toMatchObject({ data: { act: 'product.add', subject: 'press' } });
  const coupons = await client.get('/api/v2/coupons', { headers: { 'service-api-key': secrets.apiKey } });
  expect(dataOf(coupons)).toMatchObject({ coupons: [{ id: 7, code: 'SAVE', percent_off: 12.5 }] });

  const use = async (key: string): Promise<unknown> => {
    const headers = { 'product-secret-key': secrets.product, 'idempotency-key': key };
    const answer = await client.put('/api/v2/license/usage', { headers, form: { license_key: 'KEY-1' } });
    return dataOf(answer)['uses'];
  };
  expect([await use('last'), await use('next'), await use('last'), await use('next')]).toEqual([5, 6, 5, 6]);

  const headers = { ...admin.headers, 'idempotency-key': 'revoked' };
  const revoked = await client.delete('/admin/v1/tokens/token-0', { headers });
  expect(dataOf(revoked)).toMatchObject({ token_id: 'token-0', last_used_at: null, expires_at: null });
});
