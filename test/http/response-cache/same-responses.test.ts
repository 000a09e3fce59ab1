import * as fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { dialectNames } from '../../../src/domain/header-names.ts';
import { dialects } from '../../support/stores/dialects.ts';
import {
  startDialectHarness,
  secret as harnessSecret,
  otherSecret,
} from '../../support/harness/dialect-harness.ts';
import { adminToken, apiKey, limits, silentMetrics } from '../../support/app/http-app.ts';
import { serveApp, type Served } from '../../support/app/http-served.ts';
import { KeptConnection, withNewHead, withoutInstant } from '../../support/network/kept-connection.ts';
import { httpClient, type Listener } from '../../support/network/raw-http.ts';

type Request = { line: string; headers: readonly string[]; body?: string };

/** Repeats a few requests, some of which the gate refuses. */
function requestsWith(secrets: readonly string[]): fc.Arbitrary<Request[]> {
  const target = fc.constantFrom(
    '/api/v2/license/verify?license_key=KEY-1',
    '/api/v2/license/verify?license_key=KEY-1',
    '/api/v2/license/verify?license_key=KEY-2',
    '/api/v2/license/verify?license_key=key-2',
    '/api/v2/license/verify?license_key=aaaaa-bbbbb-ccccc-ddddd',
    '/api/v2/license/verify?license_key=DISABLED',
    '/api/v2/license/verify?license_key=%4BEY-1',
    '/api/v2/license/verify/?license_key=KEY-1&more=1',
    '/api/v2/license/verify?license_key=KEY-1&license_key=KEY-1',
    '/api/v2/license/verify?license_key=OF-PLAYER',
    '/api/v2/license/verify?license_key=NONE',
    '/api/v1/license/verify?license_key=KEY-1&product_link=EDITOR',
    '/api/v2/license/verify',
    '/livez',
  );
  const method = fc.constantFrom('GET', 'GET', 'GET', 'GET', 'HEAD', 'PUT', 'OPTIONS');
  const version = fc.constantFrom('HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0');
  const host = fc.constantFrom(
    'Host: localhost',
    'Host: localhost',
    'host: 127.0.0.1:80',
    'Host: evil.example',
  );
  const more = fc.constantFrom(
    'X-Request-Id: till-7',
    'X-Request-Id: till-8',
    'X-Request-Id: not well formed',
    'X-Request-Id: AAAAA-BBBBB-CCCCC-DDDDD',
    'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203332-01',
    'Origin: https://page.example',
    'Origin: https://evil.example',
    'Accept: application/problem+json',
    'User-Agent: till',
    'Prefer: wait=1',
    'Content-Length: 0',
    'Content-Encoding: gzip',
    'Content-Type: text/plain',
    'Connection: close',
    'Expect: something',
  );
  const credential = fc.constantFrom(...secrets);
  const one = fc
    .tuple(
      method,
      target,
      version,
      host,
      fc.array(credential, { maxLength: 2 }),
      fc.array(more, { maxLength: 3 }),
    )
    .map(([verb, path, spoken, named, carried, rest]) => ({
      line: `${verb} ${path} ${spoken}`,
      headers: [named, ...carried, ...rest],
    }));
  const usual = credential.map((carried) => ({
    line: 'GET /api/v2/license/verify?license_key=KEY-1 HTTP/1.1',
    headers: ['Host: localhost', carried],
  }));
  const pool = fc.array(fc.oneof(one, usual), { minLength: 1, maxLength: 3 });
  // Each of a few, again and again.
  return fc.tuple(pool, fc.array(fc.nat(), { minLength: 4, maxLength: 10 })).map(([few, order]) =>
    order.flatMap((index) => {
      const chosen = few[index % few.length];
      return chosen === undefined ? [] : [chosen, chosen];
    }),
  );
}

const bytesOf = ({ line, headers, body = '' }: Request): string => [line, ...headers, '', body].join('\r\n');

/** Sends each request on a kept connection and on a new one, and compares the responses with one to new headers. */
async function compare(listener: Listener, requests: readonly Request[]): Promise<void> {
  const begin = async (bytes: string): Promise<string> => {
    await using fresh = new KeptConnection(listener);
    return withoutInstant(await fresh.send(bytes));
  };
  await using kept = new KeptConnection(listener);
  for (const request of requests) {
    const bytes = bytesOf(request);
    const anew = (): Promise<string> => begin(withNewHead(bytes));
    await expectSame(anew, async () => withoutInstant(await kept.send(bytes)), bytes);
    await expectSame(anew, () => begin(bytes), bytes);
  }
}

/**
 * Expects the response of the request with new headers before or after it. A second may begin between two requests, and
 * the upstream may respond to an agent, so up to three are sent.
 */
async function expectSame(
  anew: () => Promise<string>,
  repeat: () => Promise<string>,
  bytes: string,
): Promise<void> {
  let before = await anew();
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    const again = await repeat();
    if (again === before) return;
    before = await anew();
    if (again === before) return;
    if (attempt === 3) expect(again, bytes).toBe(before);
  }
}

/** An authority that caches responses, and how many it served from its cache. */
async function serve(
  dialect: (typeof dialectNames)[number],
): Promise<Served & { cachedCount: () => number }> {
  let count = 0;
  const metrics = { ...silentMetrics, countResponse: () => void (count += 1) };
  const served = await serveApp(
    { cachesResponses: true, metrics, dialect: dialects[dialect] },
    { allowedOrigins: ['https://page.example'], limits },
  );
  await using http = httpClient(served.listeners.tcp);
  const headers = { authorization: `Bearer ${adminToken}` };
  for (const [product, secret, keys] of [
    ['EDITOR', harnessSecret, ['KEY-1', 'KEY-2', 'DISABLED', 'AAAAA-BBBBB-CCCCC-DDDDD']],
    ['PLAYER', otherSecret, ['OF-PLAYER']],
  ] as const) {
    await http.post('/admin/v1/products', { headers, json: { name: product, product_key: product, secret } });
    for (const key of keys) {
      const json = { product_key: product, buyer_email: 'a@example.com', license_key: key };
      await http.post('/admin/v1/purchases', { headers, json });
    }
  }
  return Object.assign(served, { cachedCount: () => count });
}

const carriers = (token: string, account: string): string[] => [
  `product-secret-key: ${harnessSecret}`,
  `product-secret-key: ${harnessSecret}`,
  `Product-Secret-Key: ${otherSecret}`,
  'product-secret-key: wrong',
  `authorization: Bearer ${token}`,
  `service-api-key: ${account}`,
];

test.for(dialectNames)(
  'a repeated verify gets the same response as one with new headers (dialect %s)',
  async (dialect) => {
    await using served = await serve(dialect);
    const { tcp, socket } = served.listeners;
    await fc.assert(
      fc.asyncProperty(requestsWith(carriers(adminToken, apiKey)), async (requests) => {
        await compare(tcp, requests);
        await compare(socket, requests);
      }),
      { numRuns: 40 },
    );
    expect(served.cachedCount()).toBeGreaterThan(20);
  },
);

const roles = ['authority', 'agent'] as const;
const daemons = dialectNames.flatMap((dialect) => roles.map((role) => ({ dialect, role })));

// oxlint-disable-next-line vitest/expect-expect -- `compare` expects.
test.for(daemons)(
  'an $role with the dialect $dialect responds to a repeated verify as to one with new headers',
  async ({ dialect, role }) => {
    const rates = { rate: 0, failed_rate: 1_000_000, misses: 1_000_000 };
    await using harness = await startDialectHarness(role, 'tcp', { dialect }, { limits: rates });
    const { token, apiKey: account } = harness.credentials;
    const { tcp, socket } = harness.addresses;
    await fc.assert(
      fc.asyncProperty(requestsWith(carriers(token, account)), async (requests) => {
        await compare({ tcp: tcp ?? '' }, requests);
        await compare({ socket: socket ?? '' }, requests);
      }),
      { numRuns: 15 },
    );
  },
);

const verifyKey = (more = ''): string =>
  `GET /api/v2/license/verify?license_key=KEY-1${more} HTTP/1.1\r\nHost: localhost\r\nproduct-secret-key: ${harnessSecret}\r\n\r\n`;

test('the verify after a change shows the change before the writer announces it', async () => {
  // In this test nothing announces what the writer commits.
  await using served = await serve('specification');
  await using kept = new KeptConnection(served.listeners.tcp);
  await using http = httpClient(served.listeners.tcp);
  for (let time = 0; time < 3; time += 1) expect(await kept.send(verifyKey())).toContain('"enabled":true');
  expect(served.cachedCount()).toBeGreaterThan(0);
  const headers = { 'product-secret-key': harnessSecret };
  await http.put('/api/v2/license/disable', { headers, form: { license_key: 'KEY-1' } });
  expect(await kept.send(verifyKey())).toContain('"enabled":false');
});

test('a credential is refused as soon as it is rotated or deleted', async () => {
  await using harness = await startDialectHarness('authority', 'tcp');
  const { token, apiKey: account, secret, verifyToken } = harness.credentials;
  await using http = httpClient({ tcp: harness.addresses.tcp ?? '' });
  const headers = { authorization: `Bearer ${token}` };
  const verify = '/api/v2/license/verify?license_key=KEY-1';
  const listed = await http.get('/admin/v1/tokens', { headers });
  const { tokens } = (listed.body as { data: { tokens: { token_id: string; scopes: string[] }[] } }).data;
  const verifying = tokens.find(({ scopes }) => scopes.join() === 'verify')?.token_id ?? '';
  for (const [path, carrier, end] of [
    [
      verify,
      { authorization: `Bearer ${verifyToken}` },
      () => http.delete(`/admin/v1/tokens/${verifying}`, { headers }),
    ],
    [
      verify,
      { 'product-secret-key': secret },
      () => http.post('/admin/v1/products/EDITOR/rotate-secret', { headers }),
    ],
    [
      '/api/v2/coupons',
      { 'service-api-key': account },
      () => http.post('/admin/v1/accounts/default/rotate-key', { headers }),
    ],
  ] as const) {
    const ask = async (): Promise<number> => (await http.get(path, { headers: carrier })).status;
    expect([await ask(), await ask(), await ask()]).toEqual([200, 200, 200]);
    await end();
    expect(await ask()).toBe(401);
  }
});

test('a verify with a very long target is not cached', async () => {
  await using served = await serve('specification');
  await using kept = new KeptConnection(served.listeners.tcp);
  const verify = vi.spyOn(served.app.licenseService, 'verify');
  const long = verifyKey(`&more=${'x'.repeat(1_000)}`);
  for (let time = 0; time < 3; time += 1) expect(await kept.send(long)).toContain('200 OK');
  expect(verify).toHaveBeenCalledTimes(3);
});

test('cached responses to pipelined requests arrive whole and in order before their connection is closed', async () => {
  await using served = await serve('specification');
  const { tcp } = served.listeners;
  // With a single connection, each response is sent at once.
  await using other = new KeptConnection(tcp);
  await other.send(verifyKey());
  await using kept = new KeptConnection(tcp);
  for (let time = 0; time < 3; time += 1) await kept.send(verifyKey());
  const before = served.cachedCount();
  const all = await kept.sendLast([verifyKey(), verifyKey(), verifyKey(), 'nonsense\r\n\r\n'].join(''));
  expect(all.match(/HTTP\/1\.1 \d+/g)).toEqual([200, 200, 200, 400].map((status) => `HTTP/1.1 ${status}`));
  expect(all.match(/"license_key":"KEY-1"/g)).toHaveLength(3);
  expect(served.cachedCount()).toBe(before + 3);
});

test('a new connection gets the cached response of another connection, if it is to the same listener and credential', async () => {
  await using served = await serve('specification');
  const { tcp, socket } = served.listeners;
  await using first = new KeptConnection(tcp);
  for (let time = 0; time < 3; time += 1) await first.send(verifyKey());
  const before = served.cachedCount();
  await using second = new KeptConnection(tcp);
  expect(await second.send(verifyKey())).toContain('"license_key":"KEY-1"');
  expect(served.cachedCount()).toBe(before + 1);
  await using closing = new KeptConnection(tcp);
  const last = verifyKey().replace('Host:', 'Connection: close\r\nHost:');
  for (let time = 0; time < 3; time += 1) expect(await closing.send(last)).toContain('Connection: close');
  const cached = served.cachedCount();
  expect(cached).toBeGreaterThan(before + 1);
  await using elsewhere = new KeptConnection(socket);
  await elsewhere.send(verifyKey());
  await using stranger = new KeptConnection(tcp);
  expect(await stranger.send(verifyKey().replace(harnessSecret, 'wrong'))).toContain(' 401 ');
  expect(served.cachedCount()).toBe(cached);
});
