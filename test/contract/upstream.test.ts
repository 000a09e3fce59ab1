import { getEventListeners } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import {
  cutBody,
  delayResponse,
  emptyResponse,
  every,
  type Fault,
  firewallPage,
  firstFew,
  hang,
  loseResponse,
  loseRequest,
  rateLimited,
  redirect,
  refusal,
  serverError,
  corruptBody,
  truncateBody,
} from '../support/harness/plain-upstream.ts';
import {
  changeOf,
  clientOf,
  key,
  never,
  now,
  startHarness,
  stopTimers,
} from '../support/harness/upstream-harness.ts';
import { buildTerms } from '../support/builders/coupon-builders.ts';

const licenseFields = {
  licenseKey: key,
  productKey: 'p1',
  buyerEmail: 'a@example.com',
  createdAt: Date.UTC(2024, 1, 22, 11, 23, 5),
};
const terms = buildTerms({
  discount: { type: 'percent', percentOff: 12.5 },
  endAt: Date.UTC(2050, 0, 1),
  usageLimit: 5,
  notes: 'ä & b = c',
});

test('each license operation returns the license after the change', async () => {
  await using scene = await startHarness();
  const { client } = scene;
  const expected = (uses: number, enabled: boolean): unknown => ({
    outcome: 'applied',
    value: { ...licenseFields, uses, enabled },
    confirmedAt: now,
    isCached: false,
  });
  expect(await client.verify('p1', key, never())).toEqual(expected(0, true));
  expect(await client.change(changeOf('p1', key, 'usage'), never())).toEqual(expected(1, true));
  expect(await client.change(changeOf('p1', key, 'usage'), never())).toEqual(expected(2, true));
  expect(await client.change(changeOf('p1', key, 'decrease'), never())).toEqual(expected(1, true));
  expect(await client.change(changeOf('p1', key, 'disable'), never())).toEqual(expected(1, false));
  expect(await client.change(changeOf('p1', key, 'enable'), never())).toEqual(expected(1, true));
  // undici opens a second connection if the first has only just answered.
  expect(scene.network.connections).toBeLessThanOrEqual(2);
});

test('requests to the upstream have exactly the form of the specification', async () => {
  await using scene = await startHarness();
  const { client, server } = scene;
  await client.verify('p1', ' a&b=ä+ ', never());
  await client.change(changeOf('p1', ' a&b=ä+ ', 'usage'), never());
  await client.listCoupons({ limit: 5, offset: 10 }, never());
  await client.listCoupons({ limit: 5, offset: 10, cursor: 'abc' }, never());
  await client.createCoupon(terms, { requestId: null }, never());
  await client.getCoupon(1, never());
  const [verify, usage, list, next, create, get] = server.ledger;
  expect(next?.parameters).toEqual({ limit: '5', cursor: 'abc' });
  for (const license of [verify, usage]) {
    expect(license?.parameters).toEqual({ license_key: ' a&b=ä+ ' });
    expect(license?.headers['product-secret-key']).toBe('secret-1');
    expect(license?.headers).not.toHaveProperty('service-api-key');
  }
  for (const coupons of [list, create, get]) {
    expect(coupons?.headers['service-api-key']).toBe('api-1');
    expect(coupons?.headers).not.toHaveProperty('product-secret-key');
  }
  for (const asked of server.ledger) {
    expect(asked.headers).toMatchObject({ 'cache-control': 'no-cache', 'accept-encoding': 'identity' });
  }
  expect(usage?.headers['content-type']).toBe('application/x-www-form-urlencoded');
  expect(verify?.headers).not.toHaveProperty('content-type');
  expect(list?.parameters).toEqual({ limit: '5', offset: '10' });
  expect(get?.path).toBe('/api/v2/coupons/1');
  expect(get?.parameters).toEqual({});
  expect(create?.parameters).toEqual({
    coupon_type: 'multi',
    percent_off: '12.5',
    code: 'SPRING',
    end_date: '2050-01-01T00:00:00+00:00',
    usage_limit: '5',
    notes: 'ä & b = c',
  });
});

test.each([200, 201] as const)(
  'a coupon that is created with status %i can be read back',
  async (createdStatus) => {
    await using scene = await startHarness({}, { createdStatus });
    const { client } = scene;
    const applied = { outcome: 'applied', confirmedAt: now, isCached: false };
    const coupon = { ...terms, id: 1 };
    expect(await client.createCoupon(terms, { requestId: null }, never())).toEqual({
      ...applied,
      value: coupon,
    });
    expect(await client.getCoupon(1, never())).toEqual({ ...applied, value: coupon });
    expect(await client.listCoupons({ limit: 10, offset: 0 }, never())).toEqual({
      ...applied,
      value: { coupons: [coupon], unreadable: [] },
    });
    expect(await client.createCoupon(terms, { requestId: null }, never())).toMatchObject({
      outcome: 'not_applied',
      reason: 'refused',
      detail: 'HTTP 400: This code is taken',
    });
    expect(await client.getCoupon(9, never())).toMatchObject({ reason: 'missing', status: 404 });
  },
);

test('an unreadable coupon is omitted from the list and reported', async () => {
  await using scene = await startHarness();
  scene.server.addCoupon({ code: 'ODD', percent_off: 5, amount_off: 5 });
  scene.server.addCoupon({ code: 'GOOD', percent_off: 5 });
  expect(await scene.client.listCoupons({ limit: 10, offset: 0 }, never())).toMatchObject({
    outcome: 'applied',
    value: {
      coupons: [{ code: 'GOOD' }],
      unreadable: [{ id: 1, code: 'ODD', fault: expect.stringContaining('amount_off: ') as string }],
    },
  });
});

test('an unknown key and a wrong secret are not applied', async () => {
  await using scene = await startHarness();
  const { client, server } = scene;
  expect(await client.verify('p1', 'OTHER', never())).toEqual({
    outcome: 'not_applied',
    reason: 'missing',
    status: 404,
    detail: 'HTTP 404: Unknown license key',
    message: 'Unknown license key',
    retryAfterMs: null,
  });
  server.rotateSecret('p1', 'secret-2');
  expect(await client.verify('p1', key, never())).toMatchObject({ reason: 'unauthorized', status: 401 });
});

test('no request is sent without a credential', async () => {
  await using scene = await startHarness({ apiKey: () => null });
  const { client, server } = scene;
  const refused = { outcome: 'not_applied', reason: 'unauthorized', status: null, retryAfterMs: null };
  expect(await client.change(changeOf('p2', key, 'usage'), never())).toMatchObject(refused);
  expect(await client.listCoupons({ limit: 1, offset: 0 }, never())).toMatchObject(refused);
  expect(server.ledger).toEqual([]);
});

test('each request uses the current secret', async () => {
  let secret = 'secret-1';
  await using scene = await startHarness({ secretOf: () => secret });
  const { client, server } = scene;
  server.rotateSecret('p1', 'secret-2');
  expect(await client.verify('p1', key, never())).toMatchObject({ reason: 'unauthorized' });
  secret = 'secret-2';
  expect(await client.verify('p1', key, never())).toMatchObject({ outcome: 'applied' });
});

test('only parsed responses that are not cached set the clock of the upstream', async () => {
  const dates: (number | null)[] = [];
  await using scene = await startHarness({ onDate: (epochMs) => dates.push(epochMs) });
  const { client, server } = scene;
  await client.verify('p1', 'OTHER', never());
  server.fault = firstFew(1, corruptBody());
  await client.verify('p1', key, never());
  const data = {
    enabled: true,
    product_link: 'p1',
    license_key: key,
    buyer_email: 'a@example.com',
    uses: 0,
    date: '2024-02-22T11:23:05+00:00',
  };
  const headers = { age: '60', date: 'Thu, 01 Jan 2037 00:00:00 GMT' };
  const fromCache = { status: 200, headers, body: JSON.stringify({ success: true, data }) };
  server.fault = firstFew(1, { kind: 'replaced', counted: false, ...fromCache });
  expect(await client.verify('p1', key, never())).toMatchObject({ outcome: 'applied', isCached: true });
  expect(dates).toEqual([]);
  await client.verify('p1', key, never());
  expect(dates).toHaveLength(1);
  expect(Math.abs((dates[0] ?? 0) - Date.now())).toBeLessThan(60_000);
});

test("the upstream's URL may have a path, and its credential headers may have other names", async () => {
  await using scene = await startHarness();
  const { server } = scene;
  await using client = clientOf(`${server.url}/store/`, {
    headers: { apiKey: 'x-key', productSecret: 'x-secret' },
  });
  await client.verify('p1', key, never());
  expect(server.ledger[0]?.path).toBe('/store/api/v2/license/verify');
  expect(server.ledger[0]?.headers['x-secret']).toBe('secret-1');
});

const ambiguous = (detail: string): object => ({ outcome: 'ambiguous', detail, retryAfterMs: null });
const refused = (reason: string, status: number): object => ({
  outcome: 'not_applied',
  reason,
  status,
  detail: `HTTP ${status}: Refused`,
});
const html = 'the response is HTML, not JSON: a firewall or proxy?';
const lost = 'connection closed before the response was complete';
const late = ambiguous('no complete response in time');
const cases: readonly (readonly [string, Fault, object])[] = [
  ['the response is lost', loseResponse, ambiguous(lost)],
  ['the request is lost', loseRequest, ambiguous(lost)],
  ['it never answers', hang(), late],
  ['it neither answers nor applies the request', hang(false), late],
  ['it answers too late', delayResponse(60_000), late],
  ['a gateway answers 502', serverError(502), ambiguous('HTTP 502')],
  ['a gateway answers 504 although the request was applied', serverError(504, true), ambiguous('HTTP 504')],
  ['a firewall answers 403', firewallPage(403), ambiguous(`HTTP 403: ${html}`)],
  ['a hosting provider answers 404', firewallPage(404), ambiguous(`HTTP 404: ${html}`)],
  ['the body is an HTML page', corruptBody(), ambiguous(`HTTP 200: ${html}`)],
  ['the body is a JSON list', corruptBody('[]'), ambiguous('HTTP 200: the response is not a JSON object')],
  ['the body is half of the JSON', truncateBody, ambiguous('HTTP 200: the response is not JSON')],
  ['the body is cut off', cutBody, { outcome: 'ambiguous', retryAfterMs: null }],
  ['the body is empty', emptyResponse(200), ambiguous('HTTP 200: the response is empty')],
  ['it answers 204', emptyResponse(204), ambiguous('HTTP 204: the response is empty')],
  ['it answers 400 without a body', emptyResponse(400), ambiguous('HTTP 400: the response is empty')],
  ['it redirects', redirect('/elsewhere'), ambiguous('HTTP 307: redirects are not followed')],
  [
    'the body is endless',
    corruptBody(' '.repeat(2_000_000)),
    { ...ambiguous('the response is larger than 1 MiB'), isTooLarge: true },
  ],
  ['it answers 422', refusal(422), refused('refused', 422)],
  ['it answers 403', refusal(403), refused('unauthorized', 403)],
  ['it answers 404', refusal(404), refused('missing', 404)],
  ['it answers 409', refusal(409), refused('rejected', 409)],
  ['it answers 429', rateLimited(7), { reason: 'throttled', status: 429, retryAfterMs: 7_000 }],
];

test.each(cases)('a request is sent once if the upstream fails: %s', async (_, fault, expected) => {
  const time = stopTimers();
  await using scene = await startHarness({ timeoutMs: 300 });
  const { client, server, network } = scene;
  server.fault = every(fault);
  for (const [sent, ask] of [
    () => client.verify('p1', key, never()),
    () => client.change(changeOf('p1', key, 'usage'), never()),
    () => client.createCoupon(terms, { requestId: null }, never()),
  ].entries()) {
    const asked = ask();
    await server.until(() => server.ledger.length > sent);
    if (expected === late) time.pass(300);
    expect(await asked).toMatchObject(expected);
  }
  expect(server.ledger.map(({ kind }) => kind)).toEqual(['verify', 'usage', 'create_coupon']);
  server.fault = () => undefined;
  expect(await client.verify('p1', key, never())).toMatchObject({ outcome: 'applied' });
  // Every ambiguous response ended its connection; a refusal keeps it.
  expect(network.connections).toBeLessThanOrEqual('reason' in expected ? 2 : 1);
});

test('a response with another coupon leaves the outcome open', async () => {
  await using scene = await startHarness();
  const { client, server } = scene;
  const other = server.addCoupon({ code: 'OTHER', percent_off: 5 });
  server.fault = every(corruptBody(JSON.stringify({ data: other }), 'application/json'));
  for (const asked of [
    client.getCoupon(other.id + 1, never()),
    client.createCoupon(terms, { requestId: null }, never()),
  ]) {
    expect(await asked).toMatchObject({ outcome: 'ambiguous', detail: expect.stringContaining('another') });
  }
  expect(await client.getCoupon(other.id, never())).toMatchObject({ outcome: 'applied' });
});

test('an outcome contains neither the license key nor the secret', async () => {
  await using scene = await startHarness();
  scene.server.fault = every(refusal(400, `bad ${key.toLowerCase()} with secret-1`));
  const outcome = await scene.client.change(changeOf('p1', key, 'usage'), never());
  expect(outcome).toMatchObject({ detail: 'HTTP 400: bad *** with ***' });
});

test('a Retry-After with a date is read by the clock of the upstream', async () => {
  await using scene = await startHarness();
  scene.server.fault = () => rateLimited(new Date(Date.now() + 60_000));
  const outcome = await scene.client.verify('p1', key, never());
  expect(outcome).toMatchObject({ reason: 'throttled', retryAfterMs: expect.any(Number) });
  const { retryAfterMs = 0 } = 'retryAfterMs' in outcome ? outcome : {};
  expect(Math.abs((retryAfterMs ?? 0) - 60_000)).toBeLessThan(5_000);
});

const nothing = { outcome: 'not_applied', reason: 'unreachable', status: null, detail: 'aborted' };

test('aborting a running request leaves the outcome open and closes its connection', async () => {
  await using scene = await startHarness();
  const { client, server, network } = scene;
  server.fault = every(hang());
  const caller = new AbortController();
  const asked = client.change(changeOf('p1', key, 'usage'), caller.signal);
  await server.until(() => server.ledger.length === 1);
  caller.abort();
  expect(await asked).toMatchObject({
    outcome: 'ambiguous',
    status: null,
    detail: 'aborted',
    retryAfterMs: null,
  });
  await server.until(() => server.ledger[0]?.answered === 'lost');
  expect(network.connections).toBe(0);
});

test('a request that was aborted before it was sent is not applied', async () => {
  await using scene = await startHarness();
  const outcome = await scene.client.change(changeOf('p1', key, 'usage'), AbortSignal.abort());
  expect(outcome).toMatchObject(nothing);
  expect(scene.server.ledger).toEqual([]);
});

test('a request that was aborted while it waited for a connection is not sent later', async () => {
  const time = stopTimers();
  await using scene = await startHarness({ maxConnections: () => 1 });
  const { client, server } = scene;
  server.fault = firstFew(1, delayResponse(100));
  const running = client.verify('p1', key, never());
  await server.until(() => server.ledger.length === 1);
  const caller = new AbortController();
  const waiting = client.change(changeOf('p1', key, 'usage'), caller.signal);
  await setImmediate();
  caller.abort();
  expect(await waiting).toMatchObject(nothing);
  // This request is ahead of the aborted request in the queue for the only connection.
  const behind = client.verify('p1', key, never());
  time.pass(100);
  expect(await running).toMatchObject({ outcome: 'applied' });
  expect(await behind).toMatchObject({ outcome: 'applied' });
  expect(server.ledger.map(({ kind }) => kind)).toEqual(['verify', 'verify']);
});

test('finished requests leave no listener on a signal', async () => {
  await using scene = await startHarness();
  const { signal } = new AbortController();
  await scene.client.verify('p1', key, signal);
  scene.server.fault = every(loseResponse);
  await scene.client.verify('p1', key, signal);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('a higher connection limit is used by the next request', async () => {
  let most = 1;
  await using scene = await startHarness({ maxConnections: () => most });
  const { client, server } = scene;
  server.fault = every(hang());
  const leaving = new AbortController();
  const asked = [client.verify('p1', key, leaving.signal)];
  await server.until(() => server.ledger.length === 1);
  asked.push(client.verify('p1', key, leaving.signal));
  most = 2;
  asked.push(client.verify('p1', key, leaving.signal), client.verify('p1', key, leaving.signal));
  // The second request waits for the first, which had the only connection then.
  await server.until(() => server.ledger.length === 3);
  leaving.abort();
  await Promise.all(asked);
  expect(server.ledger).toHaveLength(3);
});

test('closing the client ends running requests, and later requests are not sent', async () => {
  await using scene = await startHarness();
  const { client, server } = scene;
  server.fault = every(hang());
  const asked = client.change(changeOf('p1', key, 'usage'), never());
  await server.until(() => server.ledger.length === 1);
  await client[Symbol.asyncDispose]();
  expect(await asked).toMatchObject({ outcome: 'ambiguous', detail: 'the client is closed' });
  const after = await client.change(changeOf('p1', key, 'usage'), never());
  expect(after).toMatchObject({ outcome: 'not_applied', reason: 'unreachable' });
  expect(server.ledger).toHaveLength(1);
});
