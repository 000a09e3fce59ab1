import { expect, test } from 'vitest';
import type { FastifyInstance } from 'fastify';
import { adminToken, apiKey, openApp, serverOf } from '../../../support/app/http-app.ts';

const headers = { authorization: `Bearer ${adminToken}` };

async function imported(server: FastifyInstance, noun: string, payload: object | string): Promise<unknown> {
  const type = typeof payload === 'string' ? 'text/csv' : 'application/json';
  const answer = await server.inject({
    method: 'POST',
    url: `/admin/v1/${noun}/import`,
    headers: { ...headers, 'content-type': type },
    payload,
  });
  return answer.json<{ data?: unknown }>().data ?? answer.json();
}

async function exported(server: FastifyInstance, noun: string): Promise<string> {
  return (await server.inject({ url: `/admin/v1/${noun}/export`, headers })).body;
}

async function addProduct(server: FastifyInstance): Promise<void> {
  const payload = { name: 'Press', product_key: 'press' };
  await server.inject({ method: 'POST', url: '/admin/v1/products', headers, payload });
}

test.for<readonly [noun: string, rows: readonly object[]]>([
  [
    'licenses',
    ['one, key', 'AB|CD', '"', '=1+1', 'é', "'", '\\', '#', '\uFEFFmark'].map((key) => ({
      license_key: key,
      buyer_email: 'a@example.com',
      product_key: 'press',
    })),
  ],
  [
    'coupons',
    [1e-7, 1 / 70, 1 / 3, 33.3, 100].map((percent, index) => ({
      code: `C${index}`,
      coupon_type: 'multi',
      percent_off: percent,
      notes: ['a\rb', 'a\nb', ' a ', '"'.repeat(16_384), '"a",'][index],
    })),
  ],
])('%s of any content survive an export and an import', async ([noun, rows]) => {
  await using here = await openApp();
  await using elsewhere = await openApp();
  const [server, other] = [serverOf(here.app), serverOf(elsewhere.app)];
  await addProduct(server);
  await addProduct(other);
  const all = { imported: rows.length, unchanged: 0, ignored: [], rejected: [] };
  expect(await imported(server, noun, { [noun]: rows })).toEqual(all);
  const csv = await exported(server, noun);
  expect(await imported(other, noun, csv)).toEqual(all);
  expect(await exported(other, noun)).toBe(csv);
});

test('the license and the purchase of a person who was forgotten survive an export and an import', async () => {
  await using here = await openApp();
  await using elsewhere = await openApp();
  const [server, other] = [serverOf(here.app), serverOf(elsewhere.app)];
  for (const each of [server, other]) await addProduct(each);
  const sale = { license_key: 'K', buyer_email: 'ann@example.com', product_key: 'press' };
  await imported(server, 'purchases', { purchases: [sale] });
  const forget = { url: '/admin/v1/customers/forget', headers, payload: { buyer_email: 'ann@example.com' } };
  expect((await server.inject({ method: 'POST', ...forget })).statusCode).toBe(200);
  for (const noun of ['licenses', 'purchases']) {
    const csv = await exported(server, noun);
    expect(csv).toContain(',forgotten,');
    expect(await imported(other, noun, csv)).toMatchObject({ imported: 1, rejected: [] });
    expect(await imported(other, noun, csv)).toMatchObject({ unchanged: 1, rejected: [] });
    expect(await exported(other, noun)).toBe(csv);
  }
});

test('a key that was replaced stays disabled after an export and an import', async () => {
  await using here = await openApp();
  await using elsewhere = await openApp();
  const [server, other] = [serverOf(here.app), serverOf(elsewhere.app)];
  for (const each of [server, other]) await addProduct(each);
  const leaked = { license_key: 'LEAKED', buyer_email: 'a@example.com', product_key: 'press' };
  await imported(server, 'licenses', { licenses: [{ ...leaked, replaced_by: 'NEW' }] });
  const csv = await exported(server, 'licenses');
  const report = { imported: 1, unchanged: 0, ignored: [], rejected: [] };
  expect(await imported(other, 'licenses', csv)).toEqual(report);
  expect(await imported(other, 'licenses', csv)).toEqual({ ...report, imported: 0, unchanged: 1 });
  expect(await exported(other, 'licenses')).toBe(csv);
  for (const each of [server, other]) {
    const enabled = await each.inject({
      method: 'PUT',
      url: '/api/v2/license/enable',
      headers,
      payload: { license_key: 'LEAKED' },
    });
    expect([enabled.statusCode, enabled.json()]).toMatchObject([409, { code: 'license_revoked' }]);
  }
});

const formulas = [
  '=HYPERLINK("http://example.com","click")',
  '+1+1',
  '-2+3',
  '@SUM(A1)',
  '\t=1',
  '\r=1',
  ' =1+1',
  "'=1",
  '\uFF1D1+1',
  'x;=1+1',
  'two\n=1+1',
];

test('no cell that customers or shops have filled in is a formula in a spreadsheet', async () => {
  await using opened = await openApp();
  await using elsewhere = await openApp();
  const [server, other] = [serverOf(opened.app), serverOf(elsewhere.app)];
  const coupons = formulas.map((notes, index) => ({
    code: `C${index}`,
    coupon_type: 'multi',
    percent_off: 5,
    notes,
  }));
  const all = { imported: formulas.length, unchanged: 0, ignored: [], rejected: [] };
  expect(await imported(server, 'coupons', { coupons })).toEqual(all);
  const csv = await exported(server, 'coupons');
  // A spreadsheet may also take a semicolon, a tab or a line break for the end of a cell.
  expect(csv.split(/[,;\t\r\n]/).filter((cell) => /^"?\s*[=+\-@\uFF1D]/.test(cell))).toEqual([]);
  expect(csv).toContain(`'=HYPERLINK`);
  expect(await imported(other, 'coupons', csv)).toEqual(all);
  expect(await exported(other, 'coupons')).toBe(csv);
  const read = await elsewhere.app.reader.coupons.after('default', 0, 100);
  expect(read.map(({ notes }) => notes)).toEqual(formulas);
});

test('states and dates are read as stores write them', async () => {
  await using opened = await openApp();
  const server = serverOf(opened.app);
  await addProduct(server);
  const csv = [
    'license_key,buyer_email,product_key,enabled,date',
    'A,a@example.com,press,TRUE,2024-02-22',
    'B,a@example.com,press,No,2024-02-22 11:23:05',
    'C,a@example.com,press,1,2024-02-22T11:23:05+02:00',
    'D,a@example.com,press,0,2024-02-30',
    'E,a@example.com,press,perhaps,22/02/2024',
  ].join('\n');
  expect(await imported(server, 'licenses', csv)).toEqual({
    imported: 3,
    unchanged: 0,
    ignored: [],
    rejected: [
      {
        row: 5,
        code: 'not_a_datetime',
        detail: 'date must be a date or an RFC 3339 datetime.',
        value: '2024-02-30',
      },
      {
        row: 6,
        code: 'not_a_boolean',
        detail: 'enabled must be true or false, yes or no, 1 or 0.',
        value: 'perhaps',
      },
      {
        row: 6,
        code: 'not_a_datetime',
        detail: 'date must be a date or an RFC 3339 datetime.',
        value: '22/02/2024',
      },
    ],
  });
  expect((await exported(server, 'licenses')).split('\r\n').slice(1, 4)).toEqual([
    'A,press,a@example.com,0,true,2024-02-22T00:00:00+00:00,,,,,,,,,',
    'B,press,a@example.com,0,false,2024-02-22T11:23:05+00:00,,,,,,,,,',
    'C,press,a@example.com,0,true,2024-02-22T09:23:05+00:00,,,,,,,,,',
  ]);
});

test('the terms of licenses are exported, and imported again as they were', async () => {
  await using opened = await openApp();
  await using elsewhere = await openApp();
  const [server, other] = [serverOf(opened.app), serverOf(elsewhere.app)];
  for (const each of [server, other]) await addProduct(each);
  const csv = [
    'license_key,buyer_email,product_key,expires_at,entitlements,uses_limit,metadata,seats,lease_term_s',
    `A,a@example.com,press,2030-02-28,"pro, export",9,"{""note"": ""1,2""}",3,604800`,
    'B,a@example.com,press,,,,,,',
    'C,a@example.com,press,2030-02-30,,,,,',
    'D,a@example.com,press,,,,,,60',
  ].join('\n');
  const report = await imported(server, 'licenses', csv);
  expect(report).toMatchObject({
    imported: 2,
    rejected: [
      { row: 4, code: 'not_a_datetime' },
      { row: 5, code: 'out_of_range' },
    ],
  });
  const terms = {
    entitlements: ['export', 'pro'],
    metadata: { note: '1,2' },
    seats: 3,
    leaseTermMs: 604_800_000,
  };
  const stored = { expiresAt: Date.UTC(2030, 1, 28, 23, 59, 59), usesLimit: 9, terms };
  expect(await opened.app.reader.licenses.get('A')).toMatchObject(stored);
  expect(await opened.app.reader.licenses.get('B')).not.toHaveProperty('expiresAt');
  const all = await exported(server, 'licenses');
  expect(await imported(other, 'licenses', all)).toMatchObject({ imported: 2, rejected: [] });
  expect(await exported(other, 'licenses')).toBe(all);
  expect(await imported(other, 'licenses', all)).toMatchObject({ unchanged: 2 });
  const changed = all.replace('2030-02-28', '2031-02-28');
  expect(await imported(other, 'licenses', changed)).toMatchObject({
    unchanged: 1,
    rejected: [{ code: 'license_key_taken' }],
  });
});

test.each(['NULL', '-', '1970-01-01', '-x'])('an entitlement may be called %s', async (word) => {
  await using opened = await openApp();
  await using elsewhere = await openApp();
  const [server, other] = [serverOf(opened.app), serverOf(elsewhere.app)];
  for (const each of [server, other]) await addProduct(each);
  const row = { license_key: 'A', buyer_email: 'a@example.com', product_key: 'press', entitlements: [word] };
  await imported(server, 'licenses', { licenses: [row] });
  const csv = await exported(server, 'licenses');
  expect(await imported(other, 'licenses', csv)).toMatchObject({ imported: 1, rejected: [] });
  expect(await elsewhere.app.reader.licenses.get('A')).toMatchObject({ terms: { entitlements: [word] } });
});

test('an imported coupon id leaves room for the ids of all later coupons', async () => {
  await using opened = await openApp();
  const server = serverOf(opened.app);
  const coupon = (code: string, id: number): object => ({ id, code, coupon_type: 'multi', amount_off: 1 });
  const greatest = 2 ** 52 - 1;
  const coupons = [coupon('A', Number.MAX_SAFE_INTEGER), coupon('B', greatest + 1), coupon('C', greatest)];
  expect(await imported(server, 'coupons', { coupons })).toMatchObject({
    imported: 1,
    rejected: [
      { row: 1, code: 'out_of_range' },
      { row: 2, code: 'out_of_range' },
    ],
  });
  const created = await server.inject({
    method: 'POST',
    url: '/api/v2/coupons',
    headers: { 'service-api-key': apiKey },
    payload: { code: 'NEXT', coupon_type: 'multi', amount_off: 1 },
  });
  expect(created.json()).toMatchObject({ data: { id: greatest + 1 } });
});

test.each(['licenses', 'purchases'])(
  'an export or import of %s can be restricted to one account',
  async (noun) => {
    await using opened = await openApp();
    const server = serverOf(opened.app);
    await addProduct(server);
    const { json } = await server.inject({
      method: 'POST',
      url: '/admin/v1/accounts',
      headers,
      payload: { name: 'Other shop' },
    });
    const others = json<{ data: { account_id: string } }>().data.account_id;
    const send = async (account: string): Promise<unknown> => {
      const rows = [{ license_key: 'A', buyer_email: 'a@example.com', product_key: 'press' }];
      const url = `/admin/v1/${noun}/import?account_id=${account}`;
      return (await server.inject({ method: 'POST', url, headers, payload: { [noun]: rows } })).json();
    };
    expect(await send(others)).toMatchObject({
      data: { imported: 0, rejected: [{ code: 'product_not_found' }] },
    });
    expect(await send('default')).toMatchObject({ data: { imported: 1 } });
    const rowsOf = async (account: string): Promise<number> => {
      const { body } = await server.inject({
        url: `/admin/v1/${noun}/export?account_id=${account}`,
        headers,
      });
      return body.trim().split('\r\n').length - 1;
    };
    expect([await rowsOf('default'), await rowsOf(others)]).toEqual([1, 0]);
  },
);

test.each([
  ['licenses', 'account_id=nope', 'account_not_found'],
  ['purchases', 'account_id=nope&product_key=press', 'account_not_found'],
  ['coupons', 'account_id=nope', 'account_not_found'],
  ['licenses', 'product_key=nope', 'product_not_found'],
  ['purchases', 'product_key=nope', 'product_not_found'],
])('an export of %s for an unknown object is refused and not empty: %s', async (noun, query, code) => {
  await using opened = await openApp();
  const server = serverOf(opened.app);
  await addProduct(server);
  const answer = await server.inject({ url: `/admin/v1/${noun}/export?${query}`, headers });
  expect([answer.statusCode, answer.json()]).toMatchObject([422, { errors: [{ code }] }]);
});
