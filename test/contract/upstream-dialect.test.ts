import { expect, test } from 'vitest';
import { received as dialects } from '../support/stores/dialects.ts';
import {
  emptyResponse,
  every,
  type Fault,
  firewallPage,
  type PlainUpstream,
  refusal,
  corruptBody,
} from '../support/harness/plain-upstream.ts';
import {
  challengePage,
  edgePage,
  type RealStoreOptions,
  startRealStore,
  type Unknown,
  unreadableCoupon,
} from '../support/harness/real-store.ts';
import {
  type ClientSettings,
  type Client,
  changeOf,
  clientOf,
  key,
  never,
} from '../support/harness/upstream-harness.ts';
import { buildTerms } from '../support/builders/coupon-builders.ts';

/*
 * Tests the client with a store that has its own responses for an unknown key. upstream.test.ts tests the
 * responses of the specification.
 */

type Scene = AsyncDisposable & { store: PlainUpstream; client: Client };

async function scene(options: Partial<RealStoreOptions> = {}, settings: ClientSettings = {}): Promise<Scene> {
  const store = await startRealStore({
    apiKey: 'api-1',
    products: [{ productKey: 'p1', secret: 'secret-1' }],
    licenses: [
      { licenseKey: key, productKey: 'p1', buyerEmail: 'a@example.com', date: '2024-02-22T11:23:05+00:00' },
    ],
    ...options,
  });
  const client = clientOf(store.url, {
    dialect: dialects.payhip,
    headers: { apiKey: 'payhip-api-key', productSecret: 'product-secret-key' },
    userAgent: 'Shop/7',
    ...settings,
  });
  return {
    store,
    client,
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}

const answered400 = (body: object): Fault => {
  return { kind: 'replaced', counted: false, status: 400, headers: {}, body: JSON.stringify(body) };
};

const missing = { outcome: 'not_applied', reason: 'missing', retryAfterMs: null };
const variants: readonly [Unknown, number, string][] = [
  ['bad request', 400, 'HTTP 400: Unknown license key'],
  ['empty', 200, 'HTTP 200: the store does not know it'],
  ['no data', 200, 'HTTP 200: the store does not know it'],
];

test.each(variants)(
  'a read of a license key that the store does not know is missing: %s',
  async (unknown, status, detail) => {
    await using it = await scene({ unknown });
    expect(await it.client.verify('p1', 'TYPO', never())).toMatchObject({
      ...missing,
      status,
      detail,
    });
  },
);

test.each(['{"data":null}', '{"data":""}', '{"data":{}}', ' \r\n'])(
  'a read that is answered 200 with %j is missing',
  async (body) => {
    await using it = await scene();
    it.store.fault = every(corruptBody(body, 'application/json'));
    expect(await it.client.verify('p1', key, never())).toMatchObject(missing);
  },
);

test('a change of an unknown key that the store answers with 400 was not applied', async () => {
  await using it = await scene();
  expect(await it.client.change(changeOf('p1', 'TYPO', 'usage'), never())).toMatchObject({
    ...missing,
    status: 400,
  });
});

test.each(['empty', 'no data'] as const)(
  'a change that is answered 200 without a license stays uncertain: %s',
  async (unknown) => {
    await using it = await scene({ unknown });
    const outcome = await it.client.change(changeOf('p1', 'TYPO', 'usage'), never());
    expect(outcome).toMatchObject({ outcome: 'ambiguous', status: 200 });
  },
);

test('the 404 of the specification means that the key is missing', async () => {
  await using it = await scene({ unknownKey: (body) => ({ status: 404, body }) });
  expect(await it.client.verify('p1', 'TYPO', never())).toMatchObject({ ...missing, status: 404 });
  expect(await it.client.change(changeOf('p1', 'TYPO', 'usage'), never())).toMatchObject(missing);
});

test('a 400 with `error: true` and without `data` means that the key is missing', async () => {
  await using it = await scene();
  it.store.fault = every(answered400({ error: true, message: 'No such license key.' }));
  expect(await it.client.verify('p1', 'TYPO', never())).toMatchObject({
    ...missing,
    detail: 'HTTP 400: No such license key.',
  });
  expect(await it.client.change(changeOf('p1', 'TYPO', 'usage'), never())).toMatchObject(missing);
});

test.each(variants)(
  'with the dialect of the specification, the response does not mean that the key is missing: %s',
  async (unknown) => {
    await using it = await scene({ unknown }, { dialect: dialects.specification });
    const expected = unknown === 'bad request' ? { reason: 'refused' } : { outcome: 'ambiguous' };
    expect(await it.client.verify('p1', 'TYPO', never())).toMatchObject(expected);
  },
);

test.each([
  ['a license', () => undefined, { outcome: 'applied', value: { licenseKey: key } }],
  ['a 400 with only a message', refusal(400, 'license_key is required'), { reason: 'refused' }],
  ['a 400 with an empty body', emptyResponse(400), { outcome: 'ambiguous' }],
  ['an HTML page', corruptBody(), { outcome: 'ambiguous' }],
  ['a JSON list', corruptBody('[]', 'application/json'), { outcome: 'ambiguous' }],
  ['an empty JSON object', corruptBody('{}', 'application/json'), { outcome: 'ambiguous' }],
  ['a 204 response', emptyResponse(204), { outcome: 'ambiguous' }],
  ['a 400 with an object as data', answered400({ error: true, data: { id: 1 } }), { reason: 'refused' }],
  ['a 400 with a number as data', answered400({ error: true, data: 7 }), { reason: 'refused' }],
  ['a 400 without an error', answered400({ error: false, data: [] }), { reason: 'refused' }],
])('%s does not mean that a key is missing', async (_, fault, expected) => {
  await using it = await scene();
  it.store.fault = typeof fault === 'function' ? fault : every(fault);
  expect(await it.client.verify('p1', key, never())).toMatchObject(expected);
});

test('a cached response does not mean that a key is missing', async () => {
  await using it = await scene();
  const answer = { status: 400, headers: { age: '7' }, body: '{"error":true,"data":[]}' };
  it.store.fault = every({ kind: 'replaced', counted: false, ...answer });
  expect(await it.client.verify('p1', key, never())).toMatchObject({ reason: 'cached' });
  expect(await it.client.change(changeOf('p1', key, 'usage'), never())).toMatchObject({
    outcome: 'ambiguous',
  });
});

const challenged = {
  outcome: 'not_applied',
  reason: 'challenged',
  status: 403,
  detail: 'HTTP 403: a firewall asks for proof of a human',
};

test.each([
  ['both headers', undefined],
  ['cf-mitigated', { 'cf-mitigated': 'challenge' }],
  ['the Server header', { server: 'cloudflare' }],
])("a firewall's challenge with %s means that the store did not receive the change", async (_, mark) => {
  await using it = await scene();
  it.store.fault = every(challengePage(mark));
  expect(await it.client.change(changeOf('p1', key, 'usage'), never())).toMatchObject(challenged);
  expect(await it.client.verify('p1', key, never())).toMatchObject(challenged);
  expect(it.store.countsOf(key).net).toBe(0);
});

test.each([
  [
    'a page without the headers of the firewall',
    challengePage({ server: 'nginx' }),
    { outcome: 'ambiguous', status: 403 },
  ],
  ['another firewall’s page', firewallPage(403), { outcome: 'ambiguous', status: 403 }],
  [
    'a JSON object with the headers of the firewall',
    refusal(403, 'no', { server: 'cloudflare' }),
    { reason: 'unauthorized' },
  ],
  ['an edge server that cannot reach the store', edgePage(521), { outcome: 'ambiguous', status: 521 }],
  ['an edge server that lost the response', edgePage(520, true), { outcome: 'ambiguous', status: 520 }],
])('%s does not prove that a change did not arrive', async (_, fault, expected) => {
  await using it = await scene();
  it.store.fault = every(fault);
  expect(await it.client.change(changeOf('p1', key, 'usage'), never())).toMatchObject(expected);
});

test("with the dialect of the specification, a firewall's challenge leaves it open whether a change arrived", async () => {
  await using it = await scene({}, { dialect: dialects.specification });
  it.store.fault = every(challengePage());
  expect(await it.client.change(changeOf('p1', key, 'usage'), never())).toMatchObject({
    outcome: 'ambiguous',
  });
});

test('the coupon list omits an unreadable coupon and reports it', async () => {
  await using it = await scene();
  it.store.addCoupon({ code: 'A', percent_off: 5 });
  it.store.addCoupon(unreadableCoupon);
  it.store.addCoupon({ code: 'B', percent_off: 5 });
  const page = { limit: 10, offset: 0 };
  const listed = await it.client.listCoupons(page, never());
  expect(listed).toMatchObject({
    outcome: 'applied',
    value: {
      coupons: [{ code: 'A' }, { code: 'B' }],
      unreadable: [{ id: 2, code: 'ODD', fault: expect.stringContaining('percent_off') }],
    },
  });
  expect(await it.client.getCoupon(9, never())).toMatchObject({ reason: 'missing' });
});

test('coupons are requested with the header of the store, by the code that the caller wrote', async () => {
  await using it = await scene();
  await it.client.listCoupons({ limit: 1, offset: 0 }, never());
  await it.client.change(changeOf('p1', key, 'usage'), never());
  const [list, use] = it.store.ledger;
  expect(list).toMatchObject({ answered: 'sent', headers: { 'payhip-api-key': 'api-1' } });
  expect(use).toMatchObject({ answered: 'sent', headers: { 'product-secret-key': 'secret-1' } });
  for (const { headers } of it.store.ledger) expect(headers['user-agent']).toBe('Shop/7');
});

test('a 400 means that a coupon is missing for a read and rejected for a creation', async () => {
  await using it = await scene();
  const body = '{"error":true,"data":[],"message":"no"}';
  it.store.fault = every({ kind: 'replaced', counted: false, status: 400, headers: {}, body });
  expect(await it.client.getCoupon(9, never())).toMatchObject({ reason: 'missing' });
  expect(await it.client.createCoupon(buildTerms(), { requestId: null }, never())).toMatchObject({
    reason: 'refused',
  });
});

test('an agent sends its instance with each request and recognizes its own response', async () => {
  await using it = await scene({}, { self: 'me' });
  const own = { 'latchkey-instance': 'me', 'content-type': 'application/json' };
  for (const [status, body] of [
    [200, '{"data":{}}'],
    [508, '{}'],
    [403, '<html>'],
  ] as const) {
    it.store.fault = every({ kind: 'replaced', counted: false, status, headers: own, body });
    expect(await it.client.change(changeOf('p1', key, 'usage'), never())).toMatchObject({
      outcome: 'not_applied',
      reason: 'unreachable',
      status: null,
      detail: expect.stringContaining('this agent’s upstream points to itself'),
    });
  }
  expect(it.store.ledger[0]?.headers['latchkey-instance']).toBe('me');
});

test('an agent accepts the response of another agent', async () => {
  await using it = await scene({}, { self: 'me' });
  it.store.fault = every(refusal(404, 'no', { 'latchkey-instance': 'another' }));
  expect(await it.client.verify('p1', key, never())).toMatchObject({ reason: 'missing' });
});
