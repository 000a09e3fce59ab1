import { expect, test } from 'vitest';
import { adminToken, openApp, serverOf } from '../../../support/app/http-app.ts';

/*
 * What programs get about a license without terms, as it was recorded before licenses had terms: a program that does not know
 * terms must see the same bytes. `test/features/recorded-documents.test.ts` has what agents and devices get.
 */

const operator = { authorization: `Bearer ${adminToken}` };
const license = (uses: number, enabled: boolean): string =>
  `{"data":{"license_key":"KEY-1","enabled":${enabled},"product_link":"EDIT","buyer_email":"a@example.com","uses":${uses},"date":"2024-02-29T10:00:00+00:00"}}`;

test('a program gets the same bytes as before about a license without terms', async () => {
  await using opened = await openApp();
  const server = serverOf(opened.app);
  const post = async (path: string, payload: object): Promise<void> => {
    const sent = await server.inject({
      method: 'POST',
      url: `/admin/v1/${path}`,
      headers: operator,
      payload,
    });
    expect(sent.statusCode).toBe(201);
  };
  const secret = 'the-secret-of-the-editor';
  await post('products', { name: 'Editor', product_key: 'EDIT', secret });
  const buyer = { buyer_email: 'a@example.com', date: '2024-02-29T10:00:00Z' };
  await post('purchases', { product_key: 'EDIT', license_key: 'KEY-1', ...buyer });
  const headers = { 'product-secret-key': secret, 'x-request-id': 'r' };
  const verify = await server.inject({ url: '/api/v2/license/verify?license_key=KEY-1', headers });
  expect(verify.body).toBe(license(0, true));
  const ofServer = new Set(['date', 'connection', 'latchkey-instance']);
  expect(Object.entries(verify.headers).filter(([name]) => !ofServer.has(name))).toEqual([
    ['cache-control', 'no-store'],
    ['vary', 'service-api-key, product-secret-key, authorization, accept'],
    ['x-request-id', 'r'],
    ['latchkey-freshness', 'authoritative'],
    ['content-type', 'application/json; charset=utf-8'],
    ['content-length', '143'],
  ]);
  const change = async (what: string): Promise<string> => {
    const sent = {
      method: 'PUT',
      url: `/api/v2/license/${what}`,
      payload: { license_key: 'KEY-1' },
    } as const;
    return (await server.inject({ ...sent, headers })).body;
  };
  expect(await change('usage')).toBe(license(1, true));
  expect(await change('disable')).toBe(license(1, false));
  expect(await change('usage')).toBe(license(2, false));
  expect(await change('enable')).toBe(license(2, true));
  expect(await change('decrease')).toBe(license(1, true));
});
