import { expect, test } from 'vitest';
import { failWith, type Result } from '../../../../src/domain/problem/problem.ts';
import { rateLimiters } from '../../../../src/http/entry/rate-limits.ts';
import type { LicenseChangeRequest, LicenseService } from '../../../../src/service/services.ts';
import type { Tenant } from '../../../../src/domain/access/principal.ts';
import { adminToken, openApp, serverOf } from '../../../support/app/http-app.ts';

const key = 'ABCDE-FGHJK-LMNPQ-RSTUV';
const asAdmin = { authorization: `Bearer ${adminToken}` };
const refused: Result<never> = failWith('lease_not_found', 'There is none.');

test.each(['authority', 'agent'] as const)('an %s has no leases of its own', async (role) => {
  await using opened = await openApp({ role });
  const server = serverOf(opened.app);
  const requests = [
    { method: 'GET', url: `/agent/v1/lease?license_key=${key}` },
    { method: 'PUT', url: '/agent/v1/lease', payload: { lease: 'a.b.c', keys: 'a.b.c' } },
    { method: 'POST', url: '/agent/v1/lease/request', payload: { license_key: key } },
    { method: 'POST', url: '/agent/v1/activations', payload: { license_key: key } },
    { method: 'DELETE', url: `/agent/v1/activations/${key}` },
    { method: 'GET', url: '/agent/v1/activations' },
  ] as const;
  for (const request of requests) {
    const answer = await server.inject({ ...request, headers: asAdmin });
    expect([request.url, answer.statusCode, answer.json<{ code: string }>().code]).toEqual([
      request.url,
      409,
      'not_a_holder',
    ]);
    // A license key alone is no credential there.
    expect((await server.inject(request)).statusCode).toBe(401);
  }
});

/** A holder whose license service records what it is asked for. */
async function openHolder(rate = 0) {
  const verified: [Tenant, string, string | null | undefined][] = [];
  const changed: LicenseChangeRequest[] = [];
  const licenseService: LicenseService = {
    verify: (tenant, licenseKey, _, requester) => {
      verified.push([tenant, licenseKey, requester?.credential]);
      return Promise.resolve(refused);
    },
    change: (request) => {
      changed.push(request);
      return Promise.resolve(refused);
    },
    history: () => Promise.resolve(refused),
  };
  const opened = await openApp({
    role: 'holder',
    licenseService,
    licenseCredential: (licenseKey) => `license:${licenseKey.toLowerCase()}`,
    rates: rateLimiters(
      () => ({ rate, failedRate: 5 }),
      () => 0,
    ),
  });
  return { ...opened, verified, changed, [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose]() };
}

test('on a holder the license key is the credential, in a query or a body, and the secret of a product is ignored', async () => {
  await using holder = await openHolder();
  const server = serverOf(holder.app);
  const headers = { 'product-secret-key': 'anything' };
  await server.inject({ method: 'GET', url: `/api/v2/license/verify?license_key=${key}`, headers });
  expect(holder.verified).toEqual([
    [{ accountId: 'default', productKey: null }, key, `license:${key.toLowerCase()}`],
  ]);
  const payload = { license_key: key, product_key: 'RGsF' };
  await server.inject({ method: 'PUT', url: '/api/v2/license/usage', payload });
  expect(holder.changed).toMatchObject([
    { licenseKey: key, actor: `license:${key.toLowerCase()}`, tenant: { productKey: 'RGsF' } },
  ]);
  const disabled = await server.inject({ method: 'PUT', url: '/api/v2/license/disable', payload });
  expect(disabled.json()).toMatchObject({ status: 403, code: 'scope_missing' });
  const wrong = { authorization: 'Bearer wrong' };
  const unknown = await server.inject({
    method: 'GET',
    url: `/api/v2/license/verify?license_key=${key}`,
    headers: wrong,
  });
  expect(unknown.statusCode).toBe(401);
});

test('on a holder each license key has a rate of its own', async () => {
  await using holder = await openHolder(1);
  const server = serverOf(holder.app);
  const verify = async (licenseKey: string): Promise<number> =>
    (await server.inject({ method: 'GET', url: `/api/v2/license/verify?license_key=${licenseKey}` }))
      .statusCode;
  expect([await verify('A'), await verify('A'), await verify('B')]).toEqual([404, 429, 404]);
  const use = await server.inject({
    method: 'PUT',
    url: '/api/v2/license/usage',
    payload: { license_key: 'A' },
  });
  expect(use.statusCode).toBe(429);
});

test('on a holder coupons and the catalogue are not offered', async () => {
  await using holder = await openHolder();
  const server = serverOf(holder.app);
  const statuses = [];
  for (const url of ['/api/v2/coupons', '/agent/v1/coupons', '/admin/v1/products', '/admin/v1/licenses']) {
    statuses.push((await server.inject({ method: 'GET', url, headers: asAdmin })).statusCode);
  }
  expect(statuses).toEqual([501, 501, 501, 501]);
});

test('on a holder web pages and foreign hosts are refused as everywhere', async () => {
  await using holder = await openHolder();
  const server = serverOf(holder.app);
  const url = `/agent/v1/lease?license_key=${key}`;
  const codes = [];
  for (const headers of [{ origin: 'https://evil.example' }, { host: 'evil.example' }])
    codes.push((await server.inject({ method: 'GET', url, headers })).json<{ code: string }>().code);
  expect(codes).toEqual(['origin_forbidden', 'host_forbidden']);
});
