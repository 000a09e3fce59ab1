import { afterEach, beforeEach, expect, test } from 'vitest';
import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import { adminToken, openApp, serverOf, type TestApp } from '../../../support/app/http-app.ts';

let opened: TestApp;
let server: FastifyInstance;
beforeEach(async () => {
  opened = await openApp();
  server = serverOf(opened.app);
  await post('products', { name: 'Press', product_key: 'press' });
});
afterEach(() => opened[Symbol.asyncDispose]());

const authorization = `Bearer ${adminToken}`;
const post = (path: string, payload: object): Promise<LightMyRequestResponse> =>
  server.inject({ method: 'POST', url: `/admin/v1/${path}`, headers: { authorization }, payload });
const postCsv = (path: string, payload: string, type = 'text/csv'): Promise<LightMyRequestResponse> =>
  server.inject({
    method: 'POST',
    url: `/admin/v1/${path}`,
    headers: { authorization, 'content-type': type },
    payload,
  });
const listed = async (): Promise<unknown[]> => {
  const answer = await server.inject({ url: '/admin/v1/licenses?limit=100', headers: { authorization } });
  return answer.json<{ data: { licenses: unknown[] } }>().data.licenses;
};
const reportOf = (answer: LightMyRequestResponse): unknown => answer.json<{ data: unknown }>().data;

const license = (licenseKey: string, more: object = {}): object => ({
  license_key: licenseKey,
  buyer_email: 'buyer@example.com',
  ...more,
});
const object = (licenseKey: string, more: object = {}): object => ({
  ...license(licenseKey),
  enabled: true,
  product_link: 'press',
  uses: 0,
  date: expect.any(String) as string,
  purchase_id: null,
  refunded_at: null,
  state: 'enabled' in more && more.enabled === false ? 'disabled' : 'enabled',
  freshness: null,
  confirmed_at: null,
  pending: null,
  missing_since: null,
  ...more,
});

test('an import with an unsupported type mentions CSV, and other requests mention forms', async () => {
  const told = async (path: string): Promise<unknown> =>
    (await postCsv(path, 'license_key', 'text/plain')).json<{ detail: unknown }>().detail;
  expect(await told('licenses/import')).toBe('Send application/json or text/csv.');
  expect(await told('products')).toBe('Send application/x-www-form-urlencoded or application/json.');
});

test('licenses are imported with their dates, counts and states', async () => {
  const answer = await post('licenses/import', {
    product_key: 'press',
    licenses: [
      license('A', { uses: 7, enabled: false, date: '2024-02-22T11:23:05+00:00' }),
      license('B', { uses: null }),
    ],
  });
  expect([answer.statusCode, reportOf(answer)]).toEqual([
    200,
    { imported: 2, unchanged: 0, ignored: [], rejected: [] },
  ]);
  expect(await listed()).toEqual([
    object('A', { uses: 7, enabled: false, date: '2024-02-22T11:23:05+00:00' }),
    object('B'),
  ]);
});

test('a repeated import changes nothing, even after a use that the import does not mention', async () => {
  const rows = { product_key: 'press', licenses: [license('A', { date: '2024-02-22T11:23:05.250Z' })] };
  await post('licenses/import', rows);
  await opened.write(({ licenses }) => licenses.setState({ licenseKey: 'A', uses: 3, enabled: true }, false));
  expect(reportOf(await post('licenses/import', rows))).toEqual({
    imported: 0,
    unchanged: 1,
    ignored: [],
    rejected: [],
  });
  expect(await listed()).toEqual([object('A', { uses: 3, date: '2024-02-22T11:23:05+00:00' })]);
});

test('each invalid row is named, and the valid rows are imported', async () => {
  await post('licenses/import', { product_key: 'press', licenses: [license('TAKEN', { uses: 1 })] });
  const answer = await post('licenses/import', {
    product_key: 'press',
    licenses: [
      license('A'),
      license('B', { buyer_email: 'nobody' }),
      license('TAKEN', { uses: 2 }),
      license('C', { product_key: 'unknown' }),
      license('K'.repeat(1_025)),
      license('A', { uses: 5 }),
      license('D', { ues: 5 }),
      'E',
      license('F'),
    ],
  });
  expect(reportOf(answer)).toEqual({
    imported: 2,
    unchanged: 0,
    ignored: [],
    rejected: [
      { row: 2, code: 'not_an_email', detail: 'buyer_email must be an e-mail address.', value: 'nobody' },
      { row: 3, code: 'license_key_taken', detail: 'There already is another license with this key.' },
      { row: 4, code: 'product_not_found', detail: 'There is no such product.' },
      { row: 5, code: 'too_long', detail: 'license_key must have at most 1024 characters and 2048 bytes.' },
      { row: 6, code: 'license_key_taken', detail: 'There already is another license with this key.' },
      { row: 7, code: 'unknown', detail: 'There is no parameter ues.' },
      { row: 8, code: 'malformed', detail: 'The row is not an object.' },
    ],
  });
  expect(await listed()).toEqual([object('A'), object('F'), object('TAKEN', { uses: 1 })]);
});

test('with atomic=true, one invalid row keeps all rows out', async () => {
  const answer = await post('licenses/import?atomic=true', {
    product_key: 'press',
    licenses: [license('A'), license('B', { buyer_email: 'nobody' })],
  });
  expect([answer.statusCode, answer.json()]).toMatchObject([
    422,
    {
      code: 'import_rejected',
      errors: [
        { parameter: 'row 2', code: 'not_an_email', detail: 'buyer_email must be an e-mail address.' },
      ],
    },
  ]);
  expect(await listed()).toEqual([]);
});

test('a dry run finds a repeated key, and writes nothing', async () => {
  const answer = await post('licenses/import?dry_run=true', {
    product_key: 'press',
    licenses: [license('A', { uses: 1 }), license('A', { uses: 2 }), license('A', { uses: 1 })],
  });
  expect(reportOf(answer)).toMatchObject({ imported: 1, unchanged: 1, rejected: [{ row: 2 }] });
  expect(await listed()).toEqual([]);
});

test('CSV is read as stores export it, and each row is named by its line', async () => {
  const csv = [
    '\uFEFFlicense_key,buyer_email,note,uses,enabled',
    'A,buyer@example.com,"a ""quoted"" note, with a comma",4,false',
    '',
    'B,buyer@example.com',
    'C,nobody,,,',
    'D,buyer@example.com,"over two',
    'lines",,',
  ].join('\r\n');
  const answer = await postCsv('licenses/import?product_key=press', csv, 'text/csv; charset=utf-8');
  expect(reportOf(answer)).toEqual({
    imported: 2,
    unchanged: 0,
    ignored: ['note'],
    rejected: [
      { row: 4, code: 'malformed', detail: 'The row has 2 cells, and the header 5.' },
      { row: 5, code: 'not_an_email', detail: 'buyer_email must be an e-mail address.', value: 'nobody' },
    ],
  });
  expect(await listed()).toEqual([object('A', { uses: 4, enabled: false }), object('D')]);
});

test('CSV in another charset is refused, and not read as UTF-8', async () => {
  const csv = 'license_key,product_key,buyer_email\nA,press,a@example.com\n';
  const answer = await postCsv('licenses/import', csv, 'text/csv; charset=iso-8859-1');
  expect([answer.statusCode, answer.json<{ code: string }>().code]).toEqual([415, 'unsupported_media_type']);
  expect((await postCsv('licenses/import', csv, 'text/csv; charset=UTF-8')).statusCode).toBe(200);
});

test('any number of columns without a name is ignored', async () => {
  const csv = 'license_key,,buyer_email,,\nA,x,buyer@example.com,,y\n';
  const answer = await postCsv('licenses/import?product_key=press', csv);
  expect(reportOf(answer)).toEqual({ imported: 1, unchanged: 0, ignored: [], rejected: [] });
  expect(await listed()).toEqual([object('A')]);
});

test.for<readonly [csv: string, detail: string]>([
  ['', 'It is empty: the first line of CSV names the columns.'],
  ['license_key,license_key\n', 'The header names the column "license_key" twice.'],
  ...(
    [
      [';', 'semicolons'],
      ['\t', 'tabs'],
      ['|', 'bars'],
    ] as const
  ).flatMap(([separator, name]): [string, string][] =>
    [`license_key${separator}buyer_email\n`, `"license_key"${separator}"buyer_email"\n`].map((header) => [
      `${header}A${separator}a@example.com\n`,
      `The header has ${name} between its cells: save the file with commas.`,
    ]),
  ),
  [
    'license_key,"buyer_email',
    'In the header, a quote is not closed, or a row has more than 65536 characters.',
  ],
  [
    'license_key,buyer_email\nA,"a@example.com\n',
    'After line 1, a quote is not closed, or a row has more than 65536 characters.',
  ],
])('unreadable CSV is refused with the reason: %j', async ([csv, detail]) => {
  const answer = await postCsv('licenses/import?product_key=press', csv);
  expect([answer.statusCode, answer.json()]).toMatchObject([400, { code: 'malformed_body', detail }]);
});

test('CSV whose column name has another letter case is refused, and no row is imported', async () => {
  const csv = 'license_key,buyer_email,Enabled,Note\nA,buyer@example.com,false,x\n';
  const answer = await postCsv('licenses/import?product_key=press', csv);
  const detail = 'licenses must call the column enabled, not Enabled.';
  expect([answer.statusCode, answer.json()]).toMatchObject([
    422,
    { errors: [{ parameter: 'licenses', code: 'malformed', detail }] },
  ]);
  expect(await listed()).toEqual([]);
});

test('CSV is refused on other routes, and if it has more rows than a request may have', async () => {
  const elsewhere = await postCsv('products', 'name\nPress\n');
  expect([elsewhere.statusCode, elsewhere.json<{ code: string }>().code]).toEqual([
    415,
    'unsupported_media_type',
  ]);
  const many = await postCsv('licenses/import?product_key=press', `license_key\n${'A\n'.repeat(10_001)}`);
  expect(many.json()).toMatchObject({
    errors: [{ parameter: 'licenses', detail: 'licenses must have at most 10000 rows.' }],
  });
});

const exported = async (of: FastifyInstance, noun: string): Promise<string> => {
  const answer = await of.inject({ url: `/admin/v1/${noun}/export`, headers: { authorization } });
  expect(answer.headers['content-type']).toBe('text/csv; charset=utf-8');
  return answer.body;
};

test('an export that is imported into an empty store is exported again byte for byte', async () => {
  await using elsewhere = await openApp();
  const other = serverOf(elsewhere.app);
  const payload = { name: 'Press', product_key: 'press' };
  await other.inject({ method: 'POST', url: '/admin/v1/products', headers: { authorization }, payload });
  await post('purchases', { product_key: 'press', buyer_email: 'a@example.com', license_key: 'BOUGHT' });
  const purchases = [
    { license_key: 'KEPT', buyer_email: 'a.buyer@example.com', uses: 3 },
    {
      license_key: '=cmd, "A"',
      buyer_email: 'b@example.com',
      purchase_id: 'theirs-1',
      date: '2024-02-22T11:23:05+00:00',
      refunded_at: '2024-03-01T00:00:00+00:00',
    },
  ];
  const imported = await post('purchases/import', { product_key: 'press', purchases });
  expect(reportOf(imported)).toEqual({ imported: 2, unchanged: 0, ignored: [], rejected: [] });
  await post('licenses/import', { product_key: 'press', licenses: [license('ALONE', { enabled: false })] });
  const coupons = [
    { id: 41, code: 'SPRING', coupon_type: 'multi', percent_off: 33.3, notes: 'two\nlines, "quoted"' },
    { code: 'FIVE', coupon_type: 'single', product_key: 'press', amount_off: 500, usage_limit: 5 },
  ];
  expect(reportOf(await post('coupons/import', { coupons }))).toMatchObject({ imported: 2, rejected: [] });
  for (const each of [server, other]) {
    const change = { name: 'Press', recurring: true, archived: false };
    await each.inject({
      method: 'PUT',
      url: '/admin/v1/products/press',
      headers: { authorization },
      payload: change,
    });
  }

  for (const noun of ['purchases', 'licenses', 'coupons']) {
    const csv = await exported(server, noun);
    const answer = await other.inject({
      method: 'POST',
      url: `/admin/v1/${noun}/import?atomic=true`,
      headers: { authorization, 'content-type': 'text/csv' },
      payload: csv,
    });
    expect([noun, answer.statusCode]).toEqual([noun, 200]);
    expect(await exported(other, noun)).toBe(csv);
    const again = await postCsv(`${noun}/import`, csv);
    expect([noun, reportOf(again)]).toMatchObject([noun, { imported: 0, rejected: [] }]);
  }
});

test.each(['purchases', 'licenses', 'coupons'])('an empty export of %s can be imported', async (noun) => {
  const answer = await postCsv(`${noun}/import?atomic=true`, await exported(server, noun));
  expect([answer.statusCode, reportOf(answer)]).toEqual([
    200,
    { imported: 0, unchanged: 0, ignored: [], rejected: [] },
  ]);
});

test('a refunded purchase is imported with its key disabled, and another purchase with its key is refused', async () => {
  const row = { license_key: 'A', buyer_email: 'a@example.com', refunded_at: '2024-03-01T00:00:00+00:00' };
  await post('purchases/import', { product_key: 'press', purchases: [row] });
  expect(await listed()).toMatchObject([{ license_key: 'A', enabled: false, refunded_at: row.refunded_at }]);
  const purchases = [row, { ...row, purchase_id: 'another' }, { ...row, refunded_at: null }];
  expect(reportOf(await post('purchases/import', { product_key: 'press', purchases }))).toMatchObject({
    unchanged: 1,
    rejected: [
      { row: 2, code: 'purchase_taken' },
      { row: 3, code: 'purchase_taken' },
    ],
  });
});

test('a coupon is imported under its id, and invalid coupons are named', async () => {
  const multi = (code: string, more: object = {}): object => ({
    code,
    coupon_type: 'multi',
    amount_off: 100,
    ...more,
  });
  await post('coupons/import', { coupons: [multi('FIRST', { id: 7 })] });
  const coupons = [
    multi('FIRST', { id: 7 }),
    multi('first'),
    multi('SECOND', { id: 7 }),
    multi('THIRD', { percent_off: 5 }),
    multi('FOURTH', { product_key: 'press' }),
    { code: 'FIFTH', coupon_type: 'single', product_key: 'none', amount_off: 1 },
    multi('SIXTH'),
  ];
  expect(reportOf(await post('coupons/import', { coupons }))).toMatchObject({
    imported: 1,
    unchanged: 1,
    rejected: [
      { row: 2, code: 'coupon_code_taken' },
      { row: 3, code: 'coupon_id_taken' },
      { row: 4, code: 'excluded' },
      { row: 5, code: 'excluded' },
      { row: 6, code: 'product_not_found' },
    ],
  });
  const answer = await post('coupons/import?account_id=nobody', { coupons });
  expect(answer.json<{ code: string }>().code).toBe('account_not_found');
});

test('coupons without an id do not get an id that a later row of the same import names', async () => {
  const multi = { coupon_type: 'multi', amount_off: 100 };
  const coupons = [
    { ...multi, code: 'NEW' },
    { ...multi, code: 'FIRST', id: 1 },
    { ...multi, code: 'ALSO-NEW' },
    { ...multi, code: 'SECOND', id: 2 },
    { ...multi, code: 'second' },
  ];
  expect(reportOf(await post('coupons/import', { coupons }))).toMatchObject({
    imported: 4,
    rejected: [{ row: 5, code: 'coupon_code_taken' }],
  });
  const csv = await exported(server, 'coupons');
  expect(csv.match(/^\d+,[^,]+/gm)).toEqual(['1,FIRST', '2,SECOND', '3,NEW', '4,ALSO-NEW']);
});

test.each(['licenses', 'purchases'])('an import of %s for an unknown account says so', async (noun) => {
  const rows = { product_key: 'press', [noun]: [license('A')] };
  const answer = await post(`${noun}/import?account_id=nobody`, rows);
  expect([answer.statusCode, answer.json()]).toMatchObject([
    422,
    { errors: [{ parameter: 'account_id', code: 'account_not_found' }] },
  ]);
});

test.each(['licenses', 'purchases'])(
  'an import of %s takes the product of rows without one from the body, or else from the query',
  async (noun) => {
    await post('products', { name: 'Other', product_key: 'other' });
    const rows = (key: string): object => ({
      [noun]: [license(key), license(`${key}-2`, { product_key: 'press' })],
    });
    await post(`${noun}/import?product_key=other`, rows('A'));
    await post(`${noun}/import?product_key=press`, { ...rows('B'), product_key: 'other' });
    expect(await listed()).toMatchObject([
      { license_key: 'A', product_link: 'other' },
      { license_key: 'A-2', product_link: 'press' },
      { license_key: 'B', product_link: 'other' },
      { license_key: 'B-2', product_link: 'press' },
    ]);
  },
);

/** Another account with the product `theirs`; returns its id. */
async function addOther(): Promise<string> {
  await post('accounts', { name: 'Other' });
  const accounts = await opened.app.reader.accounts.list({}, { limit: 2, offset: 0 });
  const account_id = accounts.find(({ name }) => name === 'Other')?.accountId ?? '';
  await post('products', { name: 'Theirs', product_key: 'theirs', account_id });
  return account_id;
}

test.each(['licenses', 'purchases'])(
  'an import of %s for one account does not find products of other accounts',
  async (noun) => {
    const accountId = await addOther();
    const rows = [
      { ...license('MINE'), product_key: 'press' },
      { ...license('THEIRS'), product_key: 'theirs' },
    ];
    const own = await post(`${noun}/import?account_id=${accountId}`, { [noun]: rows });
    expect(reportOf(own)).toMatchObject({ imported: 1, rejected: [{ row: 1, code: 'product_not_found' }] });
    const issued = await post('tokens', { scopes: ['admin'], account_id: 'default' });
    const { token } = issued.json<{ data: { token: string } }>().data;
    const headers = { authorization: `Bearer ${token}` };
    const url = `/admin/v1/${noun}/import`;
    const asked = await server.inject({ method: 'POST', url, headers, payload: { [noun]: rows } });
    expect(reportOf(asked)).toMatchObject({ imported: 1, rejected: [{ row: 2, code: 'product_not_found' }] });
  },
);

test('an administrator of one account can neither import into nor export from another account', async () => {
  const account_id = await addOther();
  const theirs = { product_key: 'theirs', licenses: [license('THEIRS')] };
  await post('licenses/import', theirs);
  const issued = await post('tokens', { scopes: ['admin'], account_id: 'default' });
  const { token } = issued.json<{ data: { token: string } }>().data;
  const headers = { authorization: `Bearer ${token}` };
  const asked = { method: 'POST', url: '/admin/v1/licenses/import', headers, payload: theirs } as const;
  expect(reportOf(await server.inject(asked))).toMatchObject({ rejected: [{ code: 'product_not_found' }] });
  const csv = await server.inject({ url: '/admin/v1/licenses/export', headers });
  expect(csv.body).toBe(
    'license_key,product_key,buyer_email,uses,enabled,date,replaced_by,expires_at,uses_limit,entitlements,metadata,seats,lease_hold_s,lease_term_s,lease_refresh_s\r\n',
  );
  const url = `/admin/v1/coupons/export?account_id=${account_id}`;
  expect((await server.inject({ url, headers })).statusCode).toBe(422);
});

test('a CSV body with more rows than an import may have is refused, whatever the rows contain', async () => {
  for (const row of ['x"y,z\n', 'A,b\n']) {
    const answer = await postCsv('licenses/import', `license_key,buyer_email\n${row.repeat(100_000)}`);
    expect([answer.statusCode, answer.json()]).toMatchObject([
      422,
      {
        errors: [
          { parameter: 'licenses', code: 'too_long', detail: 'licenses must have at most 10000 rows.' },
        ],
      },
    ]);
  }
});

test('a row with very many unknown members is rejected with the first of them', async () => {
  const members = Array.from({ length: 300_000 }, (_, number) => [`m${number}`, 1]);
  const answer = await post('licenses/import', { licenses: [Object.fromEntries(members)] });
  const { rejected } = reportOf(answer) as { rejected: { detail: string }[] };
  expect([answer.statusCode, rejected.length]).toEqual([200, 34]);
  expect(rejected.at(-1)?.detail).toBe('There is no parameter m31.');
});

test('the audit log counts a rejected row once, even if the row has several errors', async () => {
  const licenses = [license('A'), { uses: 'many' }, 'no object', license('B', { product_key: 'unknown' })];
  const { rejected } = reportOf(await post('licenses/import', { product_key: 'press', licenses })) as {
    rejected: { row: number }[];
  };
  expect(rejected.map(({ row }) => row)).toEqual([2, 2, 2, 3, 4]);
  const answer = await server.inject({
    url: '/admin/v1/audit?act=license.import',
    headers: { authorization },
  });
  expect(answer.json()).toMatchObject({
    data: { acts: [{ detail: '1 imported, 0 unchanged, 3 rejected' }] },
  });
});

test.each(['csv', 'json'] as const)(
  'white space around the cells of a row is removed: %s',
  async (format) => {
    const row = {
      license_key: ' A\u00A0',
      product_key: ' press ',
      buyer_email: '\tbuyer@example.com ',
      uses: ' 4 ',
      enabled: ' FALSE ',
      date: ' 2024-02-22 ',
    };
    const csv = `${Object.keys(row).join(' , ')}\n${Object.values(row).join(',')}\n`;
    const answer =
      format === 'csv'
        ? await postCsv('licenses/import', csv)
        : await post('licenses/import', { licenses: [row] });
    expect(reportOf(answer)).toEqual({ imported: 1, unchanged: 0, ignored: [], rejected: [] });
    expect(await listed()).toEqual([
      object('A', { uses: 4, enabled: false, date: '2024-02-22T00:00:00+00:00' }),
    ]);
  },
);

test('white space around the cells of a coupon is removed, but not around its notes', async () => {
  const csv = 'code,coupon_type,percent_off,product_key,notes\n SPRING , single, 10 , press , for friends \n';
  expect(reportOf(await postCsv('coupons/import', csv))).toEqual({
    imported: 1,
    unchanged: 0,
    ignored: [],
    rejected: [],
  });
  const { body } = await server.inject({ url: '/admin/v1/coupons/export', headers: { authorization } });
  expect(body).toContain(',SPRING,single,10,,,,press,,,, for friends \r\n');
  expect(reportOf(await postCsv('coupons/import', body))).toMatchObject({ imported: 0, unchanged: 1 });
});

test.each(['csv', 'json'] as const)(
  'the dates of a coupon are read without a time or a zone, and a coupon ends with its last day: %s',
  async (format) => {
    const rows = [
      ['A', '2026-01-01', '2026-01-31'],
      ['B', '2026-01-01T12:00:00', '2026-01-31T12:00:00'],
      ['C', '2026-01-01T12:00:00+01:00', '2026-01-31 12:00:00Z'],
    ].map(([code, start, end]) => ({
      code,
      coupon_type: 'multi',
      percent_off: '5',
      start_date: start,
      end_date: end,
    }));
    const csv = rows.map((row) => Object.values(row).join(',')).join('\n');
    const answer =
      format === 'csv'
        ? await postCsv('coupons/import', `code,coupon_type,percent_off,start_date,end_date\n${csv}\n`)
        : await post('coupons/import', { coupons: rows });
    expect(reportOf(answer)).toEqual({ imported: 3, unchanged: 0, ignored: [], rejected: [] });
    const { body } = await server.inject({ url: '/admin/v1/coupons/export', headers: { authorization } });
    for (const dates of [
      '2026-01-01T00:00:00+00:00,2026-01-31T23:59:59+00:00',
      '2026-01-01T12:00:00+00:00,2026-01-31T12:00:00+00:00',
      '2026-01-01T11:00:00+00:00,2026-01-31T12:00:00+00:00',
    ])
      expect(body).toContain(dates);
  },
);

const damaged = ['1.9E+18', '1,9E+18', '9.99999E+15', '#NAME?', '#REF!', '#N/A', '#DIV/0!', '########'];

test.each(damaged)(
  'a cell that a spreadsheet has damaged is not imported as a key, an id or a code: %s',
  async (cell) => {
    const rejected = [
      { row: 1, code: 'malformed', detail: expect.stringContaining('spreadsheet') as string },
    ];
    const report = { imported: 0, unchanged: 0, ignored: [], rejected };
    const ofPress = { product_key: 'press' };
    const licenses = [license(cell)];
    expect(reportOf(await post('licenses/import', { ...ofPress, licenses }))).toEqual(report);
    for (const row of [license(cell), license('A', { purchase_id: cell })]) {
      expect(reportOf(await post('purchases/import', { ...ofPress, purchases: [row] }))).toEqual(report);
    }
    const coupons = [{ code: cell, coupon_type: 'multi', percent_off: 5 }];
    expect(reportOf(await post('coupons/import', { coupons }))).toEqual(report);
  },
);

test.each(['E+18', '1E18', 'A1.9E+18', '#1', 'NA', 'C#', '#'])(
  'a key that only resembles a damaged cell is imported: %s',
  async (key) => {
    const answer = await post('licenses/import', { product_key: 'press', licenses: [license(key)] });
    expect(reportOf(answer)).toMatchObject({ imported: 1 });
  },
);

const addresses = [
  'jörg@exämple.de',
  '用户@例子.广告',
  'δοκιμή@παράδειγμα.δοκιμή',
  'buyer@exämple.de',
  'jörg@example.de',
];

test.each(addresses)('an international e-mail address is accepted for every buyer: %s', async (address) => {
  const decomposed = address.normalize('NFD');
  const row = license('A', { buyer_email: decomposed });
  const imported = await post('licenses/import', { product_key: 'press', licenses: [row] });
  expect(reportOf(imported)).toEqual({ imported: 1, unchanged: 0, ignored: [], rejected: [] });
  expect(await listed()).toEqual([object('A', { buyer_email: address.normalize('NFC') })]);
  const purchases = [license('B', { buyer_email: address })];
  expect(reportOf(await post('purchases/import', { product_key: 'press', purchases }))).toMatchObject({
    imported: 1,
  });
  const sold = await post('purchases', { product_key: 'press', buyer_email: address });
  expect(sold.statusCode).toBe(201);
  for (const [path, count] of [
    ['licenses', 3],
    ['purchases', 2],
  ] as const) {
    const url = `/admin/v1/${path}?buyer_email=${encodeURIComponent(decomposed)}`;
    const found = await server.inject({ url, headers: { authorization } });
    expect(found.headers['x-total-count']).toBe(String(count));
  }
});

test.each([
  'jörg',
  'jörg@',
  '@exämple.de',
  'jö rg@exämple.de',
  'jörg@ex ämple.de',
  'jörg@exä..de',
  'jörg@-exämple.de',
  'jö\u200Brg@exämple.de',
  'jörg@@exämple.de',
  'jörg@ex%61mple.de',
  'jörg@exämple.de/a',
])('text that is not an international e-mail address is refused: %s', async (address) => {
  const answer = await post('purchases', { product_key: 'press', buyer_email: address });
  expect(answer.json()).toMatchObject({ errors: [{ parameter: 'buyer_email', code: 'not_an_email' }] });
});
