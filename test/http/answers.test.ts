import { expect, test } from 'vitest';
import type { App, Readiness } from '../../src/http/app.ts';
import { dialects } from '../support/stores/dialects.ts';
import { problems, type ProblemCode } from '../../src/domain/problem/problem-table.ts';
import { done, failWith } from '../../src/domain/problem/problem.ts';
import type { LicenseChangeRequest, LicenseService, Provenance } from '../../src/service/services.ts';
import { StorageError } from '../../src/service/ports.ts';
import type { Status } from '../../src/service/status.ts';
import {
  adminToken,
  apiKey,
  authorityStatus,
  openApp,
  serverOf,
  silentMetrics,
} from '../support/app/http-app.ts';
import { buildLicense, buildToken } from '../support/builders/store-builders.ts';

const admin = { authorization: `Bearer ${adminToken}` };
const form = { 'content-type': 'application/x-www-form-urlencoded' };

const createdAt = Date.parse('2024-02-22T11:23:05Z');
const license = buildLicense({ licenseKey: 'KEY', productKey: 'P', uses: 3, createdAt });

/** Licensing with constant responses, which records the requests. */
function licenseServiceOf(provenance: Provenance): LicenseService & { asked: LicenseChangeRequest[] } {
  const asked: LicenseChangeRequest[] = [];
  return {
    asked,
    verify: () => Promise.resolve(done({ license, productKey: 'P', provenance })),
    change: (request) => {
      asked.push(request);
      return Promise.resolve(done({ license, productKey: 'P', provenance }));
    },
    history: () => Promise.resolve(done({ changes: [], total: 0 })),
  };
}

const stale: Provenance = {
  freshness: 'stale',
  confirmedAt: Date.parse('2026-01-01T00:00:00Z'),
  graceUntil: Date.parse('2026-01-15T00:00:00Z'),
  pending: 2,
  cache: 'hit',
  ageMs: 61_999,
};

test("an agent's response has headers that say how far to trust it", async () => {
  await using opened = await openApp({ licenseService: licenseServiceOf(stale) });
  const answer = await serverOf(opened.app).inject({
    url: '/api/v2/license/verify?license_key=KEY',
    headers: admin,
  });
  expect(answer.headers).toMatchObject({
    'latchkey-freshness': 'stale',
    'latchkey-confirmed-at': '2026-01-01T00:00:00+00:00',
    'latchkey-grace-until': '2026-01-15T00:00:00+00:00',
    'latchkey-pending': '2',
    age: '61',
    'cache-status': 'latchkey; hit',
  });
  expect(answer.json()).toEqual({
    data: {
      license_key: 'KEY',
      enabled: true,
      product_link: 'P',
      buyer_email: 'a@example.com',
      uses: 3,
      date: '2024-02-22T11:23:05+00:00',
    },
  });
});

test('a response that was fetched first says so', async () => {
  const fetched: Provenance = { ...stale, freshness: 'fresh', cache: 'miss', ageMs: 0, graceUntil: null };
  await using opened = await openApp({ licenseService: licenseServiceOf(fetched) });
  const url = '/api/v2/license/verify?license_key=KEY';
  const { headers } = await serverOf(opened.app).inject({ url, headers: admin });
  expect(headers).toMatchObject({ age: '0', 'cache-status': 'latchkey; fwd=miss' });
  expect(headers).not.toHaveProperty('latchkey-grace-until');
});

test.each([
  ['wait=5', 5_000],
  ['respond-async, WAIT = "10"; x=y', 10_000],
  ['wait=31', 30_000],
  ['wait=999999999999', 0],
  ['wait=-1', 0],
  ['wait=soon', 0],
  ['await=5', 0],
  ['', 0],
])('a caller that prefers %j waits %i ms', async (prefer, waitMs) => {
  const licenseService = licenseServiceOf(stale);
  await using opened = await openApp({ licenseService });
  await serverOf(opened.app).inject({
    method: 'PUT',
    url: '/api/v2/license/usage',
    headers: { ...admin, ...form, prefer },
    payload: 'license_key=KEY',
  });
  expect(licenseService.asked.map((request) => request.waitMs)).toEqual([waitMs]);
});

test('a second write under an idempotency key is refused while the first is running', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const licenseService = licenseServiceOf(stale);
  const slow: LicenseService = {
    ...licenseService,
    change: async (request, signal) => {
      await promise;
      return await licenseService.change(request, signal);
    },
  };
  await using opened = await openApp({ licenseService: slow });
  await opened.write(({ tokens }) =>
    tokens.add(buildToken({ scopes: ['use'] }), opened.app.digest('lk_tok_other')),
  );
  const servers = [serverOf(opened.app), serverOf(opened.app, { listener: 'socket' })] as const;
  const write = {
    method: 'PUT',
    url: '/api/v2/license/usage',
    headers: { ...admin, ...form, 'idempotency-key': 'k' },
    payload: 'license_key=KEY',
  } as const;
  const first = servers[0].inject(write);
  await expect.poll(() => opened.app.inFlight.size).toBe(1);
  const second = await servers[1].inject(write);
  expect(second.statusCode).toBe(409);
  expect(second.json()).toMatchObject({ code: 'idempotency_key_in_use' });
  expect(second.headers['retry-after']).toBe('1');
  // Each credential has its own keys.
  const other = { ...write, headers: { ...write.headers, authorization: 'Bearer lk_tok_other' } };
  const third = servers[1].inject(other);
  await expect.poll(() => opened.app.inFlight.size).toBe(2);
  resolve();
  expect([(await first).statusCode, (await third).statusCode]).toEqual([200, 200]);
  expect((await servers[1].inject(write)).statusCode).toBe(200);
});

test('a refusal of the upstream is passed on with its own status', async () => {
  const refused = failWith('upstream_refused', 'The upstream says no.', { status: 402 });
  const licenseService = { ...licenseServiceOf(stale), verify: () => Promise.resolve(refused) };
  await using opened = await openApp({ licenseService });
  const url = '/api/v2/license/verify?license_key=KEY';
  const answer = await serverOf(opened.app).inject({ url, headers: admin });
  expect(answer.statusCode).toBe(402);
  expect(answer.json()).toMatchObject({
    status: 402,
    code: 'upstream_refused',
    detail: 'The upstream says no.',
  });
});

test.each([
  [new StorageError('full', null), 507, 'storage_full'],
  [new StorageError('failed', null), 503, 'storage_failed'],
  [new Error('CANARY'), 500, 'internal_error'],
])('the response to %s does not show the cause', async (error, status, code) => {
  const licenseService = {
    ...licenseServiceOf(stale),
    change: () => {
      throw error;
    },
  };
  await using opened = await openApp({ licenseService });
  const answer = await serverOf(opened.app).inject({
    method: 'PUT',
    url: '/api/v2/license/usage',
    headers: { ...admin, ...form },
    payload: 'license_key=KEY',
  });
  expect([answer.statusCode, answer.json<{ code: string }>().code]).toEqual([status, code]);
  expect(answer.body).not.toContain('CANARY');
  const line = opened.lines.find(({ level }) => level === 'error');
  expect(line?.['request_id']).toBe(code === 'internal_error' ? answer.json()['request_id'] : undefined);
});

test('the log has no line for a verify and one line for each change and refusal, without license key or secret', async () => {
  await using opened = await openApp({ licenseService: licenseServiceOf(stale) });
  const server = serverOf(opened.app);
  await server.inject({ url: '/api/v2/license/verify?license_key=KEY-CANARY', headers: admin });
  expect(opened.lines).toEqual([]);
  await server.inject({
    method: 'PUT',
    url: '/api/v2/license/usage?x=CANARY',
    headers: { ...admin, ...form },
    payload: 'license_key=KEY-CANARY',
  });
  await server.inject({ url: '/api/v2/coupons/CANARY?x=CANARY', headers: { 'service-api-key': apiKey } });
  await server.inject({ url: '/CANARY', headers: { 'service-api-key': 'CANARY' } });
  const common = { level: 'info', request_id: expect.any(String), duration_ms: expect.any(Number) };
  expect(opened.lines).toEqual([
    { ...common, message: 'changed', method: 'PUT', route: '/api/v2/license/usage', status: 200, code: null },
    {
      ...common,
      message: 'refused',
      method: 'GET',
      route: '/api/v2/coupons/:id',
      status: 404,
      code: 'coupon_not_found',
    },
    { ...common, message: 'refused', method: 'GET', route: null, status: 404, code: 'route_not_found' },
  ]);
});

test('an agent has no routes of the catalogue, which is at its upstream', async () => {
  await using opened = await openApp({ role: 'agent' });
  const server = serverOf(opened.app);
  for (const path of ['accounts', 'products', 'purchases']) {
    const answer = await server.inject({ url: `/admin/v1/${path}`, headers: admin });
    expect([answer.statusCode, answer.json<{ code: string }>().code]).toEqual([409, 'not_the_authority']);
    expect((await server.inject({ url: `/admin/v1/${path}` })).statusCode).toBe(401);
  }
});

test('an agent lets the upstream check the product of a coupon', async () => {
  const asked: unknown[] = [];
  await using opened = await openApp({ role: 'agent' });
  const couponService: App['couponService'] = {
    ...opened.app.couponService,
    create: (accountId, terms) => {
      asked.push([accountId, terms.scope]);
      return Promise.resolve(
        done({ coupon: { ...terms, id: -1 }, provenance: { ...stale, freshness: 'provisional' } }),
      );
    },
  };
  const answer = await serverOf({ ...opened.app, couponService }).inject({
    method: 'POST',
    url: '/api/v2/coupons',
    headers: { 'service-api-key': apiKey, ...form },
    payload: 'coupon_type=single&product_key=above&amount_off=5&code=C',
  });
  expect([answer.statusCode, answer.headers['location']]).toEqual([201, '/api/v2/coupons/-1']);
  expect(answer.headers['latchkey-freshness']).toBe('provisional');
  expect(asked).toEqual([['default', { type: 'single', productKey: 'above' }]]);
});

const readinessOf = (state: Readiness['state'], reasons: readonly string[] = []) => ({
  readiness: () => ({ state, reasons }),
});

test.each(['starting', 'draining'] as const)(
  'while the process is %s, only the probes are answered',
  async (state) => {
    await using opened = await openApp(readinessOf(state));
    const server = serverOf(opened.app);
    expect((await server.inject('/livez')).statusCode).toBe(200);
    const ready = await server.inject('/readyz');
    expect([ready.statusCode, ready.json()]).toEqual([503, { status: 'unavailable', reasons: [state] }]);
    const answer = await server.inject({ url: '/api/v2/coupons', headers: { 'service-api-key': apiKey } });
    expect([answer.statusCode, answer.json<{ code: string }>().code]).toEqual([503, state]);
    expect(answer.headers['retry-after']).toBe('1');
    expect(answer.headers.connection).toBe(state === 'draining' ? 'close' : 'keep-alive');
  },
);

const unavailable = (Object.keys(problems) as ProblemCode[]).filter((code) => problems[code].status === 503);

test.each(unavailable)('a 503 %s says when to try again, except to another agent', async (code) => {
  const licenseService: LicenseService = {
    ...licenseServiceOf(stale),
    verify: () => Promise.resolve(failWith(code, '')),
  };
  await using opened = await openApp({ licenseService });
  const url = '/api/v2/license/verify?license_key=KEY';
  const ask = async (headers: Record<string, string>) => {
    const answer = await serverOf(opened.app).inject({ url, headers: { ...admin, ...headers } });
    return [answer.statusCode, answer.headers['retry-after']];
  };
  expect(await ask({})).toEqual([503, '1']);
  expect(await ask({ 'latchkey-instance': 'agent-1' })).toEqual([503, undefined]);
});

test('a 503 that names a time keeps it', async () => {
  const failed = failWith('upstream_unreachable', '', { retryAfterS: 7 });
  const licenseService = { ...licenseServiceOf(stale), verify: () => Promise.resolve(failed) };
  await using opened = await openApp({ licenseService });
  const headers = { ...admin, 'latchkey-instance': 'agent-1' };
  const url = '/api/v2/license/verify?license_key=KEY';
  expect((await serverOf(opened.app).inject({ url, headers })).headers['retry-after']).toBe('7');
});

test('a process whose storage failed is neither live nor ready', async () => {
  await using opened = await openApp({
    ...readinessOf('storage_failed', ['fsync']),
    liveness: () => ['fsync'],
  });
  for (const url of ['/livez', '/readyz']) {
    const answer = await serverOf(opened.app).inject(url);
    expect([answer.statusCode, answer.json()]).toEqual([503, { status: 'unavailable', reasons: ['fsync'] }]);
  }
});

test('metrics are text for the scope ops, and for all callers if they are open', async () => {
  const measured = (open: boolean) => ({
    metrics: { ...silentMetrics, isOpen: () => open, expose: async () => 'a 1\n' },
  });
  await using closed = await openApp(measured(false));
  expect((await serverOf(closed.app).inject('/metrics')).statusCode).toBe(401);
  const headers = { authorization: `Bearer ${adminToken}` };
  const admitted = await serverOf(closed.app).inject({ url: '/metrics', headers });
  expect([admitted.statusCode, admitted.body]).toEqual([200, 'a 1\n']);
  expect(admitted.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
  await using open = await openApp(measured(true));
  expect((await serverOf(open.app).inject('/metrics')).statusCode).toBe(200);
});

const agentStatus: Status = {
  ...authorityStatus,
  role: 'agent',
  upstream: {
    state: 'down',
    since: Date.parse('2026-01-01T00:00:00Z'),
    protocol: 'plain',
    follows: [],
    breaker: 'half_open',
    lastSuccessAt: null,
    lastError: 'refused',
    lastErrorAt: Date.parse('2026-01-01T00:01:00Z'),
    recoveredAt: null,
    retryAfterUntil: Date.UTC(2026, 0, 1),
    nextAttemptAt: null,
    proxy: null,
    pausedProducts: ['RGsF'],
    couponsPaused: false,
  },
  outbox: {
    depth: {
      pending: 1,
      in_flight: 2,
      uncertain: 3,
      inferred: 4,
      conflicted: 5,
      dead: 6,
      delivered: 7,
      cancelled: 8,
      dropped: 9,
    },
    held: 1,
    oldestAgeMs: 1_999,
  },
};

test('an agent whose upstream is down is ready unless fresh data is required', async () => {
  let status = agentStatus;
  await using opened = await openApp({ role: 'agent', status: () => status });
  const server = serverOf(opened.app);
  for (const state of ['down', 'paused', 'unknown'] as const) {
    status = { ...agentStatus, upstream: agentStatus.upstream && { ...agentStatus.upstream, state } };
    expect((await server.inject('/readyz')).statusCode).toBe(200);
    const away = await server.inject('/readyz?require=fresh');
    expect([away.statusCode, away.json()]).toEqual([
      503,
      { status: 'unavailable', reasons: [`upstream_${state}`] },
    ]);
  }
  status = { ...agentStatus, upstream: agentStatus.upstream && { ...agentStatus.upstream, state: 'up' } };
  expect((await server.inject('/readyz?require=fresh')).statusCode).toBe(200);
  expect((await server.inject('/readyz?require=much')).statusCode).toBe(422);
});

test('statusz reports the upstream and the outbox of an agent', async () => {
  await using opened = await openApp({ role: 'agent', status: () => agentStatus });
  const answer = await serverOf(opened.app).inject({ url: '/statusz', headers: admin });
  expect(answer.json()).toEqual({
    role: 'agent',
    version: '0.0.0',
    instance: authorityStatus.instance,
    uptime_s: 61,
    leases: null,
    issuer: null,
    listeners: {
      tcp: 'http://127.0.0.1:8787',
      other_tcp: [],
      socket: null,
      sockets: [],
      lost: [],
      public: null,
      tls: null,
    },
    upstream: {
      state: 'down',
      since: '2026-01-01T00:00:00+00:00',
      protocol: 'plain',
      follows: [],
      breaker: 'half_open',
      last_success_at: null,
      last_error: 'refused',
      last_error_at: '2026-01-01T00:01:00+00:00',
      recovered_at: null,
      retry_after: '2026-01-01T00:00:00+00:00',
      next_attempt_at: null,
      proxy: null,
      paused_products: ['RGsF'],
      coupons_paused: false,
    },
    outbox: {
      pending: 1,
      in_flight: 2,
      uncertain: 3,
      held: 1,
      inferred: 4,
      conflicted: 5,
      dead: 6,
      delivered: 7,
      oldest_age_s: 1,
    },
    preload: null,
    missing_keys: null,
    store_events: null,
    storage: 'ok',
    records: { fresh: 0, stale: 0, grace: 0, expired: 0, disabled: 0 },
    clock: {
      now: '2026-02-22T11:24:00+00:00',
      suspect: false,
      store_ahead_s: null,
      high_water: '2026-02-22T11:23:05+00:00',
    },
    webhooks: null,
    agents: null,
    totals: { verifies: 3, uses: 2 },
  });
});

test('credentials are also accepted in the configured header names', async () => {
  await using opened = await openApp();
  const server = serverOf(opened.app, { headerAliases: { apiKey: ['payhip-api-key'], productSecret: [] } });
  const url = '/api/v2/coupons';
  expect((await server.inject({ url, headers: { 'Payhip-Api-Key': apiKey } })).statusCode).toBe(200);
  const under = (first: string, second: string) =>
    server.inject({ url, headers: { 'payhip-api-key': first, 'service-api-key': second } });
  expect((await under(apiKey, apiKey)).statusCode).toBe(200);
  const different = await under(apiKey, 'another-key-of-16-characters');
  expect([different.statusCode, different.json<{ code: string }>().code]).toEqual([400, 'malformed_request']);
});

test('a caller that accepts problems gets them in every dialect, and a caller that excludes them does not', async () => {
  await using opened = await openApp();
  const server = serverOf({ ...opened.app, dialect: dialects.payhip });
  const problem = 'application/problem+json';
  const typeFor = async (accept: string): Promise<unknown> => {
    const { headers } = await server.inject({ url: '/api/v2/coupons', headers: { accept } });
    return headers['content-type'];
  };
  for (const accept of [problem, `text/html, ${problem};q=0.1`]) expect(await typeFor(accept)).toBe(problem);
  for (const accept of ['*/*', `application/json, ${problem};q=0`, `${problem}; q=0.00, text/html`]) {
    expect(await typeFor(accept)).toBe('application/json');
  }
});

test('HEAD gets the response to GET without its body', async () => {
  await using opened = await openApp();
  const answer = await serverOf(opened.app).inject({ method: 'HEAD', url: '/livez' });
  expect([answer.statusCode, answer.body, answer.headers['content-length']]).toEqual([200, '', '28']);
});
