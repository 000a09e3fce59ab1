import { expect, test } from 'vitest';
import {
  AnnouncedCredentialCache,
  NamedRateLimiter,
  rateLimiters,
} from '../../../src/http/entry/rate-limits.ts';
import { adminToken, apiKey, openApp, serverOf } from '../../support/app/http-app.ts';
import { dialects } from '../../support/stores/dialects.ts';
import { buildToken } from '../../support/builders/store-builders.ts';

const admin = { authorization: `Bearer ${adminToken}` };
const seller = { 'service-api-key': apiKey };

/** A clock that only a test advances. */
function clock(): { now: number; monotonic: () => number } {
  const time = { now: 0, monotonic: () => time.now };
  return time;
}

const none = { rate: 0, failedRate: 1_000 };

test('a credential above its rate waits, and other credentials do not', async () => {
  const time = clock();
  await using opened = await openApp({ rates: rateLimiters(() => ({ ...none, rate: 3 }), time.monotonic) });
  const server = serverOf(opened.app);
  const ask = (headers: object) => server.inject({ url: '/api/v2/coupons', headers: { ...headers } });
  for (let count = 0; count < 3; count += 1) expect((await ask(seller)).statusCode).toBe(200);
  const limited = await ask(seller);
  expect([limited.statusCode, limited.json()]).toMatchObject([429, { code: 'rate_limited' }]);
  expect(limited.headers['retry-after']).toBe('1');
  expect((await ask(admin)).statusCode).toBe(200);
  expect((await server.inject('/livez')).statusCode).toBe(200);
  time.now += 334;
  expect((await ask(seller)).statusCode).toBe(200);
  expect((await ask(seller)).statusCode).toBe(429);
});

test('a request above the rate is 429 whatever its scope, because 429 comes before 403', async () => {
  await using opened = await openApp({
    rates: rateLimiters(() => ({ ...none, rate: 1 }), clock().monotonic),
  });
  const server = serverOf(opened.app);
  const codes = [];
  for (let count = 0; count < 2; count += 1) {
    codes.push((await server.inject({ url: '/statusz', headers: seller })).json<{ code: string }>().code);
  }
  expect(codes).toEqual(['scope_missing', 'rate_limited']);
});

test('a rate below one per second allows one request, and the next when its time has come', () => {
  const time = clock();
  const rate = new NamedRateLimiter(() => 0.5, time.monotonic);
  expect([rate.take('a'), rate.take('a')]).toEqual([0, 2_000]);
  time.now += 2_000;
  expect(rate.take('a')).toBe(0);
});

test('without a rate no request waits', async () => {
  await using opened = await openApp({ rates: rateLimiters(() => none, clock().monotonic) });
  const server = serverOf(opened.app);
  for (let count = 0; count < 50; count += 1) {
    expect((await server.inject({ url: '/api/v2/coupons', headers: seller })).statusCode).toBe(200);
  }
});

test('after a few wrong or expired credentials per second the next ones are 429, and right credentials are never slowed', async () => {
  const time = clock();
  await using opened = await openApp({
    rates: rateLimiters(() => ({ ...none, failedRate: 5 }), time.monotonic),
  });
  const expired = buildToken({ scopes: ['ops'], expiresAt: 1 });
  await opened.write(({ tokens }) => tokens.add(expired, opened.app.digest('lk_tok_expired')));
  const server = serverOf(opened.app);
  const guess = async (secret: string): Promise<number> =>
    (await server.inject({ url: '/statusz', headers: { authorization: `Bearer ${secret}` } })).statusCode;
  expect(await guess('lk_tok_expired')).toBe(401);
  for (let count = 0; count < 4; count += 1) expect(await guess(`wrong-${count}`)).toBe(401);
  expect(await guess('lk_tok_expired')).toBe(429);
  for (let count = 0; count < 20; count += 1) {
    expect(await guess(`wrong-${count}`)).toBe(429);
    expect(await guess(adminToken)).toBe(200);
  }
  time.now += 1_000;
  expect(await guess('wrong')).toBe(401);
});

test('a request without a credential does not count as a wrong credential', async () => {
  await using opened = await openApp({
    rates: rateLimiters(() => ({ ...none, failedRate: 1 }), clock().monotonic),
  });
  const server = serverOf(opened.app);
  for (let count = 0; count < 5; count += 1) expect((await server.inject('/statusz')).statusCode).toBe(401);
});

test('a changed rate applies from the next request', () => {
  let perSecond = 1;
  const rate = new NamedRateLimiter(() => perSecond, clock().monotonic);
  expect([rate.take('a'), rate.take('a')]).toEqual([0, 1_000]);
  perSecond = 0;
  expect(rate.take('a')).toBe(0);
});

test('the least recently used bucket is evicted after 10,000 others', () => {
  const rate = new NamedRateLimiter(() => 1, clock().monotonic);
  expect([rate.take('first'), rate.take('first')]).toEqual([0, 1_000]);
  for (let count = 0; count < 10_000; count += 1) rate.take(`name-${count}`);
  expect(rate.take('first')).toBe(0);
});

test.each([
  [200, { 'service-api-key': apiKey, 'payhip-api-key': apiKey }],
  [200, { 'service-api-key': apiKey, 'x-api-key': [apiKey, apiKey] }],
  [400, { 'service-api-key': apiKey, 'payhip-api-key': `${apiKey}x` }],
  [400, { 'service-api-key': apiKey, authorization: `Bearer ${apiKey}` }],
])('an API key under two names is answered %i: %j', async (status, headers) => {
  await using opened = await openApp({ dialect: dialects.payhip });
  const server = serverOf(opened.app, { headerAliases: { apiKey: ['x-api-key'], productSecret: [] } });
  expect((await server.inject({ url: '/api/v2/coupons', headers })).statusCode).toBe(status);
});

test('a token that is revoked while a request reads it is refused at the next request', async () => {
  await using opened = await openApp();
  const { app } = opened;
  const token = buildToken({ tokenId: 'ops', scopes: ['ops'] });
  await opened.write(({ tokens }) => tokens.add(token, app.digest('lk_tok_ops')));
  const [isRead, isRevoked] = [Promise.withResolvers<null>(), Promise.withResolvers<null>()];
  const credentials = new AnnouncedCredentialCache(app.changes).cached({
    ...app.credentials,
    async find(sent) {
      const known = await app.credentials.find(sent);
      isRead.resolve(null);
      await isRevoked.promise;
      return known;
    },
  });
  const server = serverOf({ ...app, credentials });
  const ask = async (): Promise<number> =>
    (await server.inject({ url: '/statusz', headers: { authorization: 'Bearer lk_tok_ops' } })).statusCode;
  const during = ask();
  await isRead.promise;
  await opened.write(({ tokens }) => tokens.remove('ops'));
  app.changes.announce(['credentials']);
  isRevoked.resolve(null);
  expect(await during).toBe(200);
  expect(await ask()).toBe(401);
});
