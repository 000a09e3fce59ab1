import * as fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { dialectNames } from '../../src/domain/dialect.ts';
import { CopyMemory } from '../../src/daemon/role/copy.ts';
import { dialects } from '../../src/http/dialects/all.ts';
import { Memory } from '../../src/http/memory.ts';
import { postgresOfProject } from '../support/app/app-store.ts';
import {
  startDialectHarness,
  secret as harnessSecret,
  otherSecret,
} from '../support/harness/dialect-harness.ts';
import { adminToken, apiKey, limits, silentMetrics } from '../support/app/http-app.ts';
import { serveApp, type Served } from '../support/app/http-served.ts';
import { KeptConnection, withNewHead, withoutInstant } from '../support/network/kept-connection.ts';
import { httpClient, type Listener } from '../support/network/raw-http.ts';

/** What an authority may remember; a copy on PostgreSQL never answers. */
const remembering =
  postgresOfProject === null ? (['answers', 'credentials'] as const) : (['credentials'] as const);

const kinds = dialectNames.flatMap((dialect) => remembering.map((remembers) => ({ dialect, remembers })));

/** Nothing grows old by it. */
const standingClock = { now: () => 0, elapsed: () => 0 };

type Request = { line: string; headers: readonly string[]; body?: string };

/** Requests of few kinds, so that one often follows another of the same, with heads that the gate has an opinion of. */
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

const keyHeader = 'Idempotency-Key:';

/** Changes of few kinds, good and bad, each of which is answered the same however often it is made. */
function changesWith(secrets: readonly string[]): fc.Arbitrary<Request[]> {
  const form = 'Content-Type: application/x-www-form-urlencoded';
  const json = 'content-type: application/json; charset=utf-8';
  const body = fc.constantFrom(
    { type: form, text: 'license_key=KEY-1' },
    { type: form, text: 'license_key=KEY-1' },
    { type: form, text: 'license_key=KEY-2&more=1' },
    { type: form, text: 'license_key=%4BEY-1' },
    { type: form, text: 'license_key=NONE' },
    { type: form, text: 'license_key=OF-PLAYER' },
    { type: form, text: 'license_key=' },
    { type: form, text: 'license_key=KEY-1&license_key=KEY-1' },
    { type: form, text: 'license_key=%FF' },
    { type: form, text: '' },
    { type: form, text: `license_key=KEY-1&more=${'x'.repeat(70_000)}` },
    { type: form, text: Array.from({ length: 200 }, (_, index) => `p${index}=1`).join('&') },
    { type: json, text: '{"license_key":"KEY-1"}' },
    { type: json, text: '{"license_key":"KEY-1"}' },
    { type: json, text: '{"license_key":"KEY-1","license_key":"KEY-2"}' },
    { type: json, text: '{"license_key":1}' },
    { type: json, text: '{' },
    { type: 'Content-Type: text/plain', text: 'license_key=KEY-1' },
  );
  const more = fc.constantFrom(
    'X-Request-Id: till-7',
    'X-Request-Id: till-8',
    'X-Request-Id: AAAAA-BBBBB-CCCCC-DDDDD',
    'Origin: https://page.example',
    'Accept: application/problem+json',
    'Prefer: wait=1',
    'Content-Encoding: gzip',
    'Connection: close',
    `${keyHeader} one\r\n${keyHeader} two`,
  );
  const odd = fc.constantFrom('key-1', '"key-1"', '"a \\"b\\""', '', '"', 'x'.repeat(256));
  const key = fc.oneof(
    odd,
    fc.nat(200).map((number) => `key-${number}`),
  );
  const target = fc.constantFrom(
    '/api/v2/license/disable',
    '/api/v2/license/disable',
    '/api/v2/license/disable',
    '/api/v2/license/disable',
    '/api/v2/license/disable',
    '/api/v2/license/disable/',
    '/api/v2/license/disable?more=1',
    '/api/v1/license/disable?product_link=EDITOR',
    '/agent/v1/quote',
  );
  const one = fc
    .tuple(target, fc.constantFrom(...secrets), body, fc.array(more, { maxLength: 1 }))
    .map(([path, carried, { type, text }, rest]) => ({
      line: `PUT ${path} HTTP/1.1`,
      headers: ['Host: localhost', carried, type, ...rest, `Content-Length: ${text.length}`],
      body: text,
    }));
  const usual = fc.constant({
    line: 'PUT /api/v2/license/disable HTTP/1.1',
    headers: ['Host: localhost', secrets[0] ?? '', form, 'Content-Length: 17'],
    body: 'license_key=KEY-1',
  });
  const sent = fc.tuple(body, key);
  // The head of one with the bodies of others: what was refused is so too after what was not.
  return fc
    .tuple(fc.oneof(one, usual), fc.boolean(), fc.array(sent, { minLength: 4, maxLength: 10 }))
    .map(([given, isKeyed, others]) => {
      const first = isKeyed ? { ...given, headers: [`${keyHeader} key-1`, ...given.headers] } : given;
      return others.flatMap(([{ text }, otherKey]) => {
        const changed = first.headers.toSpliced(-1, 1, `Content-Length: ${text.length}`);
        const headers = isKeyed ? changed.toSpliced(0, 1, `${keyHeader} ${otherKey}`) : changed;
        const next = { ...first, headers, body: text };
        return [first, next, next];
      });
    });
}

const bytesOf = ({ line, headers, body = '' }: Request): string => [line, ...headers, '', body].join('\r\n');

/** Compares what comes over a connection that is kept, and over one that begins, with what comes to a new head. */
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
 * Expects of a repeated request what the new one before it was answered, or the new one after it: a second may begin
 * between two of them, and an agent hear from its upstream. Asks thrice, since both may happen.
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

/** An authority that listens and remembers, and how often it answered past its routes. */
async function serve(
  dialect: (typeof dialectNames)[number],
  remembers: (typeof remembering)[number] = remembering[0],
): Promise<Served & { repeated: () => number }> {
  let count = 0;
  const metrics = { ...silentMetrics, countAnswer: () => void (count += 1) };
  const served = await serveApp(
    {
      ...(remembers === 'answers'
        ? { memory: new Memory() }
        : { knownGrants: new CopyMemory(standingClock) }),
      metrics,
      dialect: dialects[dialect],
    },
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
  return Object.assign(served, { repeated: () => count });
}

const carriers = (token: string, account: string): string[] => [
  `product-secret-key: ${harnessSecret}`,
  `product-secret-key: ${harnessSecret}`,
  `Product-Secret-Key: ${otherSecret}`,
  'product-secret-key: wrong',
  `authorization: Bearer ${token}`,
  `service-api-key: ${account}`,
];

test.for(kinds)(
  'a verify like the one before it is answered as any other: $dialect, $remembers',
  async (kind) => {
    await using served = await serve(kind.dialect, kind.remembers);
    const { tcp, socket } = served.listeners;
    await fc.assert(
      fc.asyncProperty(requestsWith(carriers(adminToken, apiKey)), async (requests) => {
        await compare(tcp, requests);
        await compare(socket, requests);
      }),
      { numRuns: 40 },
    );
    expect(served.repeated()).toBeGreaterThan(20);
  },
);

const roles = ['authority', 'agent'] as const;
const daemons = dialectNames.flatMap((dialect) => roles.map((role) => ({ dialect, role })));

// oxlint-disable-next-line vitest/expect-expect -- `compare` expects.
test.for(daemons)('so it is by an $role that speaks $dialect', async ({ dialect, role }) => {
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
});

test.for(kinds)(
  'a change like the one before it is answered as any other: $dialect, $remembers',
  async ({ dialect, remembers }) => {
    await using served = await serve(dialect, remembers);
    const { tcp, socket } = served.listeners;
    await fc.assert(
      fc.asyncProperty(changesWith(carriers(adminToken, apiKey)), async (requests) => {
        await compare(tcp, requests);
        await compare(socket, requests);
      }),
      { numRuns: 40 },
    );
    expect(served.repeated()).toBeGreaterThan(20);
  },
);

// oxlint-disable-next-line vitest/expect-expect -- `compare` expects.
test.for(daemons)('so is a change by an $role that speaks $dialect', async ({ dialect, role }) => {
  const rates = { rate: 0, failed_rate: 1_000_000, misses: 1_000_000 };
  await using harness = await startDialectHarness(role, 'tcp', { dialect }, { limits: rates });
  const { token, apiKey: account } = harness.credentials;
  const { tcp, socket } = harness.addresses;
  await fc.assert(
    fc.asyncProperty(changesWith(carriers(token, account)), async (requests) => {
      await compare({ tcp: tcp ?? '' }, requests);
      await compare({ socket: socket ?? '' }, requests);
    }),
    { numRuns: 10 },
  );
});

const verifyKey = (more = ''): string =>
  `GET /api/v2/license/verify?license_key=KEY-1${more} HTTP/1.1\r\nHost: localhost\r\nproduct-secret-key: ${harnessSecret}\r\n\r\n`;

test('what a caller was answered about its change is known to the next verify, before the writer has told of it', async () => {
  // Nobody tells this memory what the writer commits.
  await using served = await serve('specification');
  await using kept = new KeptConnection(served.listeners.tcp);
  await using http = httpClient(served.listeners.tcp);
  for (let time = 0; time < 3; time += 1) expect(await kept.send(verifyKey())).toContain('"enabled":true');
  expect(served.repeated()).toBeGreaterThan(0);
  const headers = { 'product-secret-key': harnessSecret };
  await http.put('/api/v2/license/disable', { headers, form: { license_key: 'KEY-1' } });
  expect(await kept.send(verifyKey())).toContain('"enabled":false');
});

test('a credential is refused as soon as it was rolled or deleted, however often it was accepted before', async () => {
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
      () => http.post('/admin/v1/products/EDITOR/roll-secret', { headers }),
    ],
    [
      '/api/v2/coupons',
      { 'service-api-key': account },
      () => http.post('/admin/v1/accounts/default/roll-key', { headers }),
    ],
  ] as const) {
    const ask = async (): Promise<number> => (await http.get(path, { headers: carrier })).status;
    expect([await ask(), await ask(), await ask()]).toEqual([200, 200, 200]);
    await end();
    expect(await ask()).toBe(401);
  }
});

test('what a caller adds to its question fills no memory', async () => {
  await using served = await serve('specification');
  await using kept = new KeptConnection(served.listeners.tcp);
  const verify = vi.spyOn(served.app.licensing, 'verify');
  const long = verifyKey(`&more=${'x'.repeat(1_000)}`);
  for (let time = 0; time < 3; time += 1) expect(await kept.send(long)).toContain('200 OK');
  expect(verify).toHaveBeenCalledTimes(3);
});

test('answers that leave together come whole and in order, before their connection is closed', async () => {
  await using served = await serve('specification');
  const { tcp } = served.listeners;
  // With a single connection each answer leaves at once.
  await using beside = new KeptConnection(tcp);
  await beside.send(verifyKey());
  await using kept = new KeptConnection(tcp);
  for (let time = 0; time < 3; time += 1) await kept.send(verifyKey());
  const before = served.repeated();
  const all = await kept.sendLast([verifyKey(), verifyKey(), verifyKey(), 'nonsense\r\n\r\n'].join(''));
  expect(all.match(/HTTP\/1\.1 \d+/g)).toEqual([200, 200, 200, 400].map((status) => `HTTP/1.1 ${status}`));
  expect(all.match(/"license_key":"KEY-1"/g)).toHaveLength(3);
  expect(served.repeated()).toBe(before + 3);
});

test('a verify that another connection has sent before is answered on one that begins as on the other', async () => {
  await using served = await serve('specification');
  const { tcp, socket } = served.listeners;
  await using first = new KeptConnection(tcp);
  for (let time = 0; time < 3; time += 1) await first.send(verifyKey());
  const before = served.repeated();
  await using second = new KeptConnection(tcp);
  expect(await second.send(verifyKey())).toContain('"license_key":"KEY-1"');
  expect(served.repeated()).toBe(before + 1);
  await using closing = new KeptConnection(tcp);
  const last = verifyKey().replace('Host:', 'Connection: close\r\nHost:');
  expect(await closing.send(last)).toContain('Connection: close');
  expect(await closing.send(last)).toContain('Connection: close');
  expect(served.repeated()).toBe(before + 2);
  // Another listener, or another credential, is another matter.
  await using elsewhere = new KeptConnection(socket);
  await elsewhere.send(verifyKey());
  await using stranger = new KeptConnection(tcp);
  expect(await stranger.send(verifyKey().replace(harnessSecret, 'wrong'))).toContain(' 401 ');
  expect(served.repeated()).toBe(before + 2);
});
