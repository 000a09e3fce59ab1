import { expect, test } from 'vitest';
import { done, refuse } from '../../src/domain/problem.ts';
import { NamedRate, Rates } from '../../src/http/entry/rates.ts';
import type { Licensing } from '../../src/service/answers.ts';
import { licenseNotFound } from '../../src/service/access/reach.ts';
import { adminToken, apiKey, openApp, serverOf } from '../support/http-app.ts';

const admin = { authorization: `Bearer ${adminToken}` };
const seller = { 'service-api-key': apiKey };

/** A clock that stands still until it is told. */
function clock(): { now: number; steady: () => number } {
  const time = { now: 0, steady: () => time.now };
  return time;
}

const none = { rate: 0, misses: 1_000, failedRate: 1_000 };

test('a credential that asks more often than it may waits, and no other does', async () => {
  const time = clock();
  await using opened = await openApp({ rates: new Rates(() => ({ ...none, rate: 3 }), time.steady) });
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

test('without a rate nobody waits', async () => {
  await using opened = await openApp({ rates: new Rates(() => none, clock().steady) });
  const server = serverOf(opened.app);
  for (let count = 0; count < 50; count += 1) {
    expect((await server.inject({ url: '/api/v2/coupons', headers: seller })).statusCode).toBe(200);
  }
});

test('after a few wrong credentials a second the next ones are 429, and right ones are never slowed', async () => {
  const time = clock();
  await using opened = await openApp({ rates: new Rates(() => ({ ...none, failedRate: 5 }), time.steady) });
  const server = serverOf(opened.app);
  const guess = async (secret: string): Promise<number> =>
    (await server.inject({ url: '/statusz', headers: { authorization: `Bearer ${secret}` } })).statusCode;
  for (let count = 0; count < 5; count += 1) expect(await guess(`wrong-${count}`)).toBe(401);
  for (let count = 0; count < 20; count += 1) {
    expect(await guess(`wrong-${count}`)).toBe(429);
    expect(await guess(adminToken)).toBe(200);
  }
  time.now += 1_000;
  expect(await guess('wrong')).toBe(401);
});

test('a request without a credential is no wrong credential', async () => {
  await using opened = await openApp({
    rates: new Rates(() => ({ ...none, failedRate: 1 }), clock().steady),
  });
  const server = serverOf(opened.app);
  for (let count = 0; count < 5; count += 1) expect((await server.inject('/statusz')).statusCode).toBe(401);
});

/** Licensing of an agent whose upstream knows the keys that begin with K; counts how often it is asked. */
function upstreamLicensing(): Licensing & { asked: number } {
  const licensing = {
    asked: 0,
    verify: (_: unknown, licenseKey: string) => {
      licensing.asked += 1;
      if (!licenseKey.startsWith('K')) return Promise.resolve(licenseNotFound());
      const license = { licenseKey, productKey: 'P', buyerEmail: 'b@example.com', uses: 0, enabled: true };
      return Promise.resolve(
        done({ license: { ...license, createdAt: 0 }, provenance: { freshness: 'authoritative' as const } }),
      );
    },
    change: () => Promise.resolve(refuse('upstream_unreachable', 'Not here.')),
  };
  return licensing;
}

test('who guesses keys at an agent stops reaching its upstream; known keys and other callers go on', async () => {
  const time = clock();
  const licensing = upstreamLicensing();
  const rates = new Rates(() => ({ ...none, misses: 5 }), time.steady);
  await using opened = await openApp({ role: 'agent', licensing, rates });
  const { transaction } = opened;
  transaction.observations.put({
    license: {
      licenseKey: 'KNOWN',
      productKey: 'P',
      buyerEmail: 'b@example.com',
      uses: 0,
      enabled: true,
      createdAt: 0,
    },
    local: { uses: 0, enabled: true, pending: 0 },
    productKey: 'P',
    confirmedAt: 0,
    boot: 1,
    manyWriters: false,
    missingSince: null,
    gone: false,
    askedAt: 0,
    refreshAt: null,
  } as Parameters<typeof transaction.observations.put>[0]);
  const server = serverOf(opened.app);
  const verify = async (key: string, headers: object = admin): Promise<number> =>
    (await server.inject({ url: `/api/v2/license/verify?license_key=${key}`, headers: { ...headers } }))
      .statusCode;
  for (let count = 0; count < 50; count += 1) expect(await verify(`K-new-${count}`)).toBe(200);
  for (let count = 0; count < 5; count += 1) expect(await verify(`guess-${count}`)).toBe(404);
  const { asked } = licensing;
  for (let count = 0; count < 30; count += 1) expect(await verify(`guess-${count}`)).toBe(429);
  expect(licensing.asked).toBe(asked);
  expect(await verify('KNOWN')).toBe(200);
  time.now += 200;
  expect([await verify('guess'), await verify('guess')]).toEqual([404, 429]);
});

test('guesses under way at once are all counted afterwards', () => {
  const time = clock();
  const misses = new NamedRate(() => 5, time.steady);
  for (let count = 0; count < 105; count += 1) misses.charge('token:a');
  expect(misses.waitOf('token:a')).toBe(20_200);
  expect(misses.waitOf('token:b')).toBe(0);
});

test('a rate that is configured anew holds from the next request on', () => {
  let perSecond = 1;
  const rate = new NamedRate(() => perSecond, clock().steady);
  expect([rate.take('a'), rate.take('a')]).toEqual([0, 1_000]);
  perSecond = 0;
  expect(rate.take('a')).toBe(0);
});

test('ten thousand names later the first one begins anew: memory is bounded', () => {
  const rate = new NamedRate(() => 1, clock().steady);
  expect([rate.take('first'), rate.take('first')]).toEqual([0, 1_000]);
  for (let count = 0; count < 10_000; count += 1) rate.take(`name-${count}`);
  expect(rate.take('first')).toBe(0);
});
