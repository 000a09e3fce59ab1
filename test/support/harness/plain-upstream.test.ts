import { createServer } from 'node:http';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  cutBody,
  delayResponse,
  emptyResponse,
  every,
  everyNth,
  firewallPage,
  firstFew,
  hang,
  loseResponse,
  loseRequest,
  movesCounter,
  outliveCaller,
  rateLimited,
  redirect,
  refusal,
  serverError,
  corruptBody,
  startPlainUpstream,
  truncateBody,
  type Fault,
  type PlainUpstream,
  type PlainUpstreamOptions,
} from './plain-upstream.ts';
import { httpClient, sendRaw, type HttpResponse, type HttpClient } from '../network/raw-http.ts';
import { temporaryDirectory } from '../temporary.ts';

const key = 'KEY-1';
const secret = { 'product-secret-key': 'secret-1' };
const account = { 'service-api-key': 'api-1' };
const coupon = { code: 'SPRING', coupon_type: 'multi', percent_off: '12.5' };

interface Scene extends AsyncDisposable {
  readonly upstream: PlainUpstream;
  readonly client: HttpClient;
  readonly use: () => Promise<HttpResponse>;
}

async function startHarness(options: Partial<PlainUpstreamOptions> = {}): Promise<Scene> {
  const upstream = await startPlainUpstream({
    apiKey: 'api-1',
    products: [
      { productKey: 'p1', secret: 'secret-1' },
      { productKey: 'p2', secret: 'secret-2' },
    ],
    licenses: [
      { licenseKey: key, productKey: 'p1', buyerEmail: 'a@example.com', date: '2024-02-22T11:23:05+00:00' },
    ],
    ...options,
  });
  const client = httpClient({ tcp: upstream.url });
  return {
    upstream,
    client,
    use: () =>
      client.put('/api/v2/license/usage', {
        headers: secret,
        form: { license_key: key },
        signal: AbortSignal.timeout(30_000),
      }),
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

test('the plain upstream answers a verify with the license object of the specification', async () => {
  await using scene = await startHarness();
  const { client } = scene;
  const answer = await client.get(`/api/v2/license/verify?license_key=${key}`, { headers: secret });
  expect(answer.status).toBe(200);
  expect(answer.headers['date']).toBeDefined();
  expect(answer.body).toEqual({
    data: {
      license_key: key,
      enabled: true,
      product_link: 'p1',
      buyer_email: 'a@example.com',
      uses: 0,
      date: '2024-02-22T11:23:05+00:00',
    },
  });
});

test('the plain upstream changes a license and writes the change to its ledger', async () => {
  await using scene = await startHarness();
  const { client, upstream } = scene;
  for (const name of ['usage', 'usage', 'decrease', 'disable', 'disable', 'enable']) {
    const form = { license_key: key };
    const answer = await client.put(`/api/v2/license/${name}`, { headers: secret, form });
    expect(answer.status).toBe(200);
  }
  expect(upstream.license(key)).toMatchObject({ uses: 1, enabled: true });
  expect(upstream.countsOf(key)).toEqual({ usages: 2, decreases: 1, net: 1, unanswered: 0 });
  expect(upstream.ledger.map(({ kind, counted }) => [kind, counted])).toEqual([
    ['usage', true],
    ['usage', true],
    ['decrease', true],
    ['disable', true],
    ['disable', false],
    ['enable', true],
  ]);
  expect(upstream.ledger[0]).toMatchObject({ licenseKey: key, headers: secret, answered: 'sent' });
});

test.each([
  [true, 0],
  [false, -1],
])(
  'with floorAtZero %s, the plain upstream answers a decrease at zero with %i',
  async (floorAtZero, uses) => {
    await using scene = await startHarness({ floorAtZero });
    const { client, upstream } = scene;
    await client.put('/api/v2/license/decrease', { headers: secret, form: { license_key: key } });
    expect(upstream.license(key).uses).toBe(uses);
    expect(upstream.ledger[0]?.counted).toBe(!floorAtZero);
  },
);

test('the plain upstream refuses an invalid request with a JSON object', async () => {
  await using scene = await startHarness();
  const { client, upstream } = scene;
  const path = '/api/v2/license/usage';
  const form = { license_key: key };
  const answers = [
    await client.put(path, { headers: secret, json: form }),
    await client.put(path, { headers: { 'product-secret-key': 'wrong' }, form }),
    await client.put(path, { headers: { 'product-secret-key': 'secret-2' }, form }),
    await client.put(path, { headers: secret, form: {} }),
    await client.get('/api/v2/coupons', { headers: secret }),
    await client.get('/sync/v1', { headers: secret }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([400, 401, 404, 400, 401, 404]);
  for (const { body } of answers) expect(body).toEqual({ error: expect.any(String) });
  expect(upstream.license(key).uses).toBe(0);
  expect(upstream.ledger.map(({ answered }) => answered)).toContain('status:404');
});

test('the plain upstream simulates another writer, a refund, a rotated secret and a deletion', async () => {
  await using scene = await startHarness();
  const { client, upstream, use } = scene;
  upstream.useElsewhere(key, 5);
  upstream.refund(key);
  expect((await use()).body).toMatchObject({ data: { uses: 6, enabled: false } });
  expect(upstream.countsOf(key).net).toBe(1);
  upstream.rotateSecret('p1', 'secret-3');
  expect((await use()).status).toBe(401);
  upstream.rotateSecret('p1', 'secret-1');
  upstream.forget(key);
  expect((await use()).status).toBe(404);
  upstream.rotateApiKey('api-2');
  expect((await client.get('/api/v2/coupons', { headers: account })).status).toBe(401);
});

test('the plain upstream creates, lists and reads coupons', async () => {
  await using scene = await startHarness({ listOrder: 'descending', createdStatus: 201 });
  const { client, upstream } = scene;
  const made = await client.post('/api/v2/coupons', { headers: account, form: coupon });
  expect(made).toMatchObject({
    status: 201,
    body: { data: { id: 1, percent_off: 12.5, amount_off: null } },
  });
  expect(Object.keys(upstream.coupons[0] ?? {})).toHaveLength(12);
  upstream.addCoupon({ code: 'OTHER', amount_off: 500 });
  const list = await client.get('/api/v2/coupons?limit=1', { headers: account });
  expect(list.body).toEqual({ data: { coupons: [expect.objectContaining({ id: 2, code: 'OTHER' })] } });
  const read = await client.get('/api/v2/coupons/1', { headers: account });
  expect(read.body).toEqual(made.body);
  expect((await client.get('/api/v2/coupons/9', { headers: account })).status).toBe(404);
});

test('the plain upstream refuses an invalid coupon, and by default a second coupon with the same code', async () => {
  await using scene = await startHarness();
  const { client, upstream } = scene;
  await using other = await startHarness({ uniqueCodes: false });
  const refused = [
    { ...coupon, amount_off: '5' },
    { ...coupon, percent_off: '101' },
    { code: 'X', amount_off: '5' },
  ];
  for (const form of refused) {
    expect((await client.post('/api/v2/coupons', { headers: account, form })).status).toBe(400);
  }
  for (const [each, second] of [
    [client, 400],
    [other.client, 200],
  ] as const) {
    expect((await each.post('/api/v2/coupons', { headers: account, form: coupon })).status).toBe(200);
    expect((await each.post('/api/v2/coupons', { headers: account, form: coupon })).status).toBe(second);
  }
  expect(upstream.coupons).toHaveLength(1);
  expect(other.upstream.coupons).toHaveLength(2);
});

test('the plain upstream stops, refuses connections, and restarts on its port with its state', async () => {
  await using scene = await startHarness();
  const { upstream, use } = scene;
  await use();
  const { port } = upstream;
  await upstream.stop();
  await expect(use()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  await upstream.start();
  expect(upstream.port).toBe(port);
  expect((await use()).body).toMatchObject({ data: { uses: 2 } });
});

test.each([
  ['a lost response', loseResponse, 1],
  ['a lost request', loseRequest, 0],
  ['a body that is cut off', cutBody, 1],
] as const)('the fault %s ends the connection', async (_name, fault, uses) => {
  await using scene = await startHarness();
  const { upstream, use } = scene;
  upstream.fault = every(fault);
  await expect(use()).rejects.toThrow(/closed|socket|terminated/i);
  expect(upstream.license(key).uses).toBe(uses);
  expect(upstream.ledger).toMatchObject([{ counted: uses === 1, answered: 'lost' }]);
  expect(upstream.countsOf(key).unanswered).toBe(uses);
});

test.each<[name: string, fault: Fault, expected: { status: number; uses: number; type: RegExp }]>([
  ['a gateway page before counting', serverError(502), { status: 502, uses: 0, type: /html/ }],
  ['a gateway page after counting', serverError(503, true), { status: 503, uses: 1, type: /html/ }],
  ["a firewall's page", firewallPage(), { status: 403, uses: 0, type: /html/ }],
  ["a hoster's 404", firewallPage(404), { status: 404, uses: 0, type: /html/ }],
  ['an empty 4xx', emptyResponse(400), { status: 400, uses: 0, type: /^$/ }],
  ['a refused credential', refusal(401), { status: 401, uses: 0, type: /json/ }],
  ['a page with status 200', corruptBody(), { status: 200, uses: 1, type: /html/ }],
  ['garbage as JSON', corruptBody('{"data":', 'text/plain'), { status: 200, uses: 1, type: /plain/ }],
  ['a rate limit', rateLimited(7), { status: 429, uses: 0, type: /json/ }],
  ['a redirect', redirect('http://127.0.0.1:1/'), { status: 307, uses: 0, type: /^$/ }],
])('the fault %s is returned unchanged', async (_name, fault, { status, uses, type }) => {
  await using scene = await startHarness();
  const { upstream, use } = scene;
  upstream.fault = every(fault);
  const answer = await use();
  expect(answer.status).toBe(status);
  expect(answer.headers['content-type'] ?? '').toMatch(type);
  expect(upstream.license(key).uses).toBe(uses);
  expect(upstream.ledger[0]?.answered).toBe(status < 300 ? 'corrupted' : `status:${status}`);
});

test('a truncated body is a complete 200 response', async () => {
  await using scene = await startHarness();
  const { upstream } = scene;
  upstream.fault = every(truncateBody);
  const answer = await sendRaw(
    { tcp: upstream.url },
    `GET /api/v2/license/verify?license_key=${key} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nproduct-secret-key: secret-1\r\n\r\n`,
  );
  expect(answer).toMatchObject({ status: 200, ending: 'closed' });
  expect(answer.headers['content-length']).toBe(String(answer.body.length));
  expect(() => JSON.parse(answer.body)).toThrow(SyntaxError);
});

test('a rate limit has a Retry-After in seconds or with a date', async () => {
  await using scene = await startHarness();
  const { upstream, use } = scene;
  upstream.fault = everyNth(1, rateLimited(30));
  expect((await use()).headers['retry-after']).toBe('30');
  upstream.fault = everyNth(1, rateLimited(new Date(0)));
  expect((await use()).headers['retry-after']).toBe('Thu, 01 Jan 1970 00:00:00 GMT');
});

test('a hanging request stays open until the upstream stops', async () => {
  await using scene = await startHarness();
  const { upstream, use } = scene;
  upstream.fault = every(hang());
  const asked = use().catch(String);
  await upstream.until(() => upstream.countsOf(key).net === 1);
  expect(upstream.ledger[0]?.answered).toBe('waiting');
  await upstream.stop();
  expect(await asked).toMatch(/closed/);
  expect(upstream.ledger[0]?.answered).toBe('lost');
});

test('a delayed response is counted before the delay', async () => {
  await using scene = await startHarness();
  const { upstream, use } = scene;
  upstream.fault = every(delayResponse(30));
  const asked = use();
  await upstream.until(() => upstream.countsOf(key).net === 1);
  expect(upstream.ledger[0]?.answered).toBe('waiting');
  expect((await asked).status).toBe(200);
  expect(upstream.ledger[0]?.answered).toBe('sent');
});

test('a held request counts after its caller has disconnected', async () => {
  await using scene = await startHarness();
  const { client, upstream } = scene;
  upstream.fault = every(outliveCaller);
  const caller = new AbortController();
  const asked = client
    .put('/api/v2/license/usage', {
      headers: secret,
      form: { license_key: key },
      signal: caller.signal,
    })
    .catch(String);
  await upstream.until(() => upstream.ledger.length === 1);
  expect(upstream.countsOf(key).net).toBe(0);
  caller.abort();
  expect(await asked).toMatch(/AbortError/);
  await upstream.until(() => upstream.countsOf(key).net === 1);
  expect(upstream.ledger[0]?.answered).toBe('lost');
});

test('a fault plan affects every nth request, or the first few', async () => {
  await using scene = await startHarness();
  const { client, upstream, use } = scene;
  const path = `/api/v2/license/verify?license_key=${key}`;
  const verify = (): Promise<HttpResponse> => client.get(path, { headers: secret });
  upstream.fault = everyNth(2, serverError(500), movesCounter);
  const statuses: number[] = [];
  for (let round = 0; round < 4; round += 1) statuses.push((await use()).status, (await verify()).status);
  expect(statuses).toEqual([200, 200, 500, 200, 200, 200, 500, 200]);
  upstream.fault = firstFew(1, serverError(500));
  expect([(await use()).status, (await use()).status]).toEqual([500, 200]);
});

test('the HTTP client of the tests works over a Unix socket and over TCP', async () => {
  await using directory = temporaryDirectory();
  const socket = join(directory.path, 'web.sock');
  const server = createServer((request, response) => response.end(`${request.method} ${request.url}`));
  await once(server.listen(socket), 'listening');
  await using client = httpClient({ socket });
  expect(await client.delete('/a')).toMatchObject({ status: 200, body: 'DELETE /a' });
  const raw = await sendRaw({ socket }, 'GET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(raw).toMatchObject({ status: 200, body: 'GET /b', ending: 'closed' });
  expect(await sendRaw({ socket }, 'GET /', { deadlineMs: 20 })).toMatchObject({
    ending: 'deadline',
    raw: '',
  });
  server.close();
  server.closeAllConnections();
});
