import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { dialects } from '../../../support/stores/dialects.ts';
import { adminToken, apiKey, openApp, serverOf, type TestApp } from '../../../support/app/http-app.ts';
import { buildLicense } from '../../../support/builders/store-builders.ts';
import { buildTerms } from '../../../support/builders/coupon-builders.ts';

let opened: TestApp;
let server: FastifyInstance;
const secret = 'sixteen-letters!';
const key = 'AAAAA-BBBBB-CCCCC-DDDDD';

beforeEach(async () => {
  opened = await openApp();
  server = serverOf(opened.app);
  await admin('POST', 'products', { name: 'Press', product_key: 'press', secret });
});
afterEach(() => opened[Symbol.asyncDispose]());

const authorization = `Bearer ${adminToken}`;

function admin(
  method: 'GET' | 'POST' | 'PUT',
  path: string,
  payload?: object,
): Promise<LightMyRequestResponse> {
  const url = `/admin/v1/${path}`;
  return server.inject({
    method,
    url,
    headers: { authorization },
    ...(payload !== undefined && { payload }),
  });
}

function license(method: 'GET' | 'PUT', act: string, licenseKey: string): Promise<LightMyRequestResponse> {
  const form = new URLSearchParams({ license_key: licenseKey }).toString();
  const headers = { 'product-secret-key': secret, 'content-type': 'application/x-www-form-urlencoded' };
  const url = `/api/v2/license/${act}`;
  return method === 'GET'
    ? server.inject({ method, url: `${url}?${form}`, headers: { 'product-secret-key': secret } })
    : server.inject({ method, url, headers, payload: form });
}

function asCoupon(method: 'GET' | 'POST', path: string, payload?: object): Promise<LightMyRequestResponse> {
  const headers = { 'service-api-key': apiKey };
  return server.inject({ method, url: path, headers, ...(payload !== undefined && { payload }) });
}

/** Calls the first version of the API, which only the dialect of Payhip has. */
function firstVersion(path: string): Promise<LightMyRequestResponse> {
  const payhip = serverOf({ ...opened.app, dialect: dialects.payhip });
  return payhip.inject({ url: `/api/v1/${path}`, headers: { 'payhip-api-key': apiKey } });
}

const purchase = (licenseKey: string): object => ({
  product_key: 'press',
  buyer_email: 'buyer@example.com',
  license_key: licenseKey,
});
const terms = (code: string): object => ({ coupon_type: 'multi', percent_off: 20, code });

/** Stores a license directly, as an earlier version allowed for imports. */
async function issueUnusual(licenseKey: string, uses: number): Promise<void> {
  const found = buildLicense({ licenseKey, buyerEmail: 'b@example.com', uses });
  await opened.write(({ licenses }) => licenses.add(found));
}

const pasted: readonly [what: string, key: string][] = [
  ['a zero-width space', `${key}\u200b`],
  ['a soft hyphen', key.replace('C', '\u00adC')],
  ['a mark for the direction of text', `\u202a${key}\u202c`],
  ['full-width letters', key.replaceAll('A', 'Ａ')],
  ['typographic dashes', key.replaceAll('-', '–')],
  ['small letters and typographic dashes', key.toLowerCase().replaceAll('-', '\u2011')],
  ['quotes and a full stop', `\u201c${key}\u201d.`],
  ['a label', `License key: ${key}`],
  ['blanks instead of dashes', key.replaceAll('-', ' ')],
  ['more invisible characters than a key may have', `${key}${'\u200b'.repeat(100)}`],
];

describe.each(pasted)('a license key that is pasted with %s', (_, sent) => {
  beforeEach(async () => {
    await admin('POST', 'purchases', purchase(key));
  });

  test('a pasted license key is verified and changed as the issued key', async () => {
    for (const [method, act, uses] of [
      ['GET', 'verify', 0],
      ['PUT', 'usage', 1],
      ['PUT', 'decrease', 0],
      ['PUT', 'disable', 0],
      ['PUT', 'enable', 0],
    ] as const) {
      const answer = await license(method, act, sent);
      expect([act, answer.statusCode]).toEqual([act, 200]);
      expect(answer.json()).toMatchObject({ data: { license_key: key, uses } });
    }
  });

  test('the first version of the API verifies a pasted license key as the issued key', async () => {
    const query = new URLSearchParams({ product_link: 'press', license_key: sent }).toString();
    const answer = await firstVersion(`license/verify?${query}`);
    expect([answer.statusCode, answer.json()]).toMatchObject([200, { data: { license_key: key } }]);
  });

  test('a pasted license key finds its license in the lists and its history', async () => {
    await license('PUT', 'usage', key);
    const query = new URLSearchParams({ license_key: sent }).toString();
    const licenses = await admin('GET', `licenses?${query}`);
    expect(licenses.json()).toMatchObject({ data: { licenses: [{ license_key: key }] } });
    const purchases = await admin('GET', `purchases?${query}`);
    expect(purchases.json()).toMatchObject({ data: { purchases: [{ license: { license_key: key } }] } });
    const history = await admin('GET', `licenses/${encodeURIComponent(sent)}/history`);
    expect(history.json()).toMatchObject({ data: { changes: [{ change: 'usage' }] } });
  });
});

test.each([
  ['https://example.com/buy', 'This is a web address, not a license key.'],
  ['ada@example.com', 'This is an e-mail address, not a license key.'],
])('%s in place of a license key has a sentence of its own', async (text, detail) => {
  for (const answer of [await license('GET', 'verify', text), await license('PUT', 'usage', text)])
    expect([answer.statusCode, answer.json()]).toMatchObject([404, { code: 'license_not_found', detail }]);
});

test('a license key in quotes that the store has in this form is found exactly', async () => {
  await admin('POST', 'purchases', purchase('"KEY-1".'));
  await admin('POST', 'purchases', purchase('KEY-1'));
  for (const sent of ['"KEY-1".', 'KEY-1'])
    expect((await license('PUT', 'usage', sent)).json()).toMatchObject({
      data: { license_key: sent, uses: 1 },
    });
});

test('a license key that an earlier version stored with unusual characters is found exactly', async () => {
  const unusual = 'OLD–1';
  await issueUnusual(unusual, 7);
  expect((await license('GET', 'verify', unusual)).json()).toMatchObject({ data: { license_key: unusual } });
  await admin('POST', 'purchases', purchase('OLD-1'));
  expect((await license('PUT', 'usage', unusual)).json()).toMatchObject({ data: { uses: 8 } });
  expect((await license('GET', 'verify', 'OLD-1')).json()).toMatchObject({ data: { uses: 0 } });
  expect((await license('GET', 'verify', 'OLD—1')).json()).toMatchObject({ data: { license_key: 'OLD-1' } });
  const row = { license_key: unusual, buyer_email: 'b@example.com', uses: 8 };
  const again = await admin('POST', 'licenses/import', { product_key: 'press', licenses: [row] });
  expect(again.json()).toMatchObject({ data: { imported: 0, unchanged: 1, rejected: [] } });
});

describe.each(pasted.slice(0, 5))('a license key with %s', (_, unusual) => {
  test('a license key with unusual characters is neither issued nor imported', async () => {
    const refused = await admin('POST', 'purchases', purchase(unusual));
    expect([refused.statusCode, refused.json()]).toMatchObject([
      422,
      { errors: [{ parameter: 'license_key', code: 'malformed' }] },
    ]);
    const row = { license_key: unusual, buyer_email: 'b@example.com' };
    for (const [path, rows] of [
      ['licenses', { licenses: [row] }],
      ['purchases', { purchases: [row] }],
    ] as const) {
      const report = await admin('POST', `${path}/import`, { product_key: 'press', ...rows });
      expect(report.json()).toMatchObject({
        data: { imported: 0, rejected: [{ row: 1, code: 'malformed' }] },
      });
    }
    expect((await license('GET', 'verify', key)).statusCode).toBe(404);
  });
});

const pastedCodes = [
  'SAVE-20\u200b',
  'SA\u00adVE-20',
  '\u202aSAVE-20',
  'ＳＡＶＥ-20',
  'SAVE–20',
  'save\u201120',
];

describe.each(pastedCodes)('the coupon code %j', (code) => {
  const cart = (sent: string): object => ({
    code: sent,
    items: [{ product_key: 'press', amount: 1000 }],
  });

  test('a pasted code is quoted, redeemed, verified and listed as the coupon SAVE-20, and repeated as the same order', async () => {
    await asCoupon('POST', '/api/v2/coupons', terms('SAVE-20'));
    const quoted = await asCoupon('POST', '/agent/v1/quote', cart(code));
    expect([quoted.statusCode, quoted.json()]).toMatchObject([200, { data: { discount: 200 } }]);
    const orders = [];
    for (const sent of [code, 'SAVE-20', code]) {
      orders.push(await asCoupon('POST', '/agent/v1/redemptions', { order: '1', ...cart(sent) }));
    }
    expect(orders.map(({ statusCode }) => statusCode)).toEqual([201, 200, 200]);
    const query = new URLSearchParams({ code }).toString();
    const listed = await asCoupon('GET', `/agent/v1/coupons?${query}`);
    expect(listed.json()).toMatchObject({ data: { coupons: [{ code: 'SAVE-20', redemptions: 1 }] } });
    const verified = await firstVersion(`coupons/verify?${query}`);
    expect([verified.statusCode, verified.json()]).toMatchObject([200, { data: [{ code: 'SAVE-20' }] }]);
  });

  test('a code with unusual characters is not created, not imported, and not given to another coupon', async () => {
    const refused = await asCoupon('POST', '/api/v2/coupons', terms(code));
    const fault = { errors: [{ parameter: 'code', code: 'malformed' }] };
    expect([refused.statusCode, refused.json()]).toMatchObject([422, fault]);
    const imported = await admin('POST', 'coupons/import', { coupons: [terms(code)] });
    expect(imported.json()).toMatchObject({ data: { imported: 0, rejected: [{ code: 'malformed' }] } });
    const made = await asCoupon('POST', '/api/v2/coupons', terms('OTHER'));
    const { id } = made.json<{ data: { id: number } }>().data;
    const renamed = await admin('PUT', `coupons/${id}`, terms(code));
    expect([renamed.statusCode, renamed.json()]).toMatchObject([422, fault]);
  });
});

test('a coupon code that an earlier version stored with unusual characters is found exactly', async () => {
  const { id } = await opened.write(({ coupons }) => coupons.add('default', buildTerms({ code: 'SAVE–20' })));
  const codeOf = async (code: string): Promise<unknown> => {
    const query = new URLSearchParams({ code }).toString();
    return (await firstVersion(`coupons/verify?${query}`)).json<{ data: { id: number }[] }>().data[0]?.id;
  };
  expect(await codeOf('SAVE–20')).toBe(id);
  await asCoupon('POST', '/api/v2/coupons', terms('SAVE-20'));
  expect(await codeOf('SAVE–20')).toBe(id);
  expect(await codeOf('SAVE-20')).toBeGreaterThan(id);
  expect(await codeOf('SAVE—20')).toBeGreaterThan(id);
  const kept = await admin('PUT', `coupons/${id}`, { ...terms('SAVE–20'), percent_off: 60 });
  expect([kept.statusCode, kept.json()]).toMatchObject([200, { data: { percent_off: 60 } }]);
});
