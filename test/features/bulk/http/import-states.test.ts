import { afterEach, beforeEach, expect, test } from 'vitest';
import type { FastifyInstance } from 'fastify';
import { adminToken, openApp, serverOf } from '../../../support/app/http-app.ts';

const authorization = `Bearer ${adminToken}`;

let opened: Awaited<ReturnType<typeof openApp>>;
let server: FastifyInstance;
beforeEach(async () => {
  opened = await openApp();
  server = serverOf(opened.app);
  const payload = { name: 'Press', product_key: 'press' };
  await server.inject({ method: 'POST', url: '/admin/v1/products', headers: { authorization }, payload });
});
afterEach(async () => {
  await opened[Symbol.asyncDispose]();
});

type Rejected = { row: number; code: string; detail: string };
type Body = {
  data?: { imported: number; ignored: string[]; rejected: Rejected[] };
  errors?: { parameter: string; detail: string }[];
};

async function send(path: string, payload: string | object): Promise<Body> {
  const type = typeof payload === 'string' ? 'text/csv' : 'application/json';
  const url = `/admin/v1/${path}`;
  const headers = { authorization, 'content-type': type };
  return (await server.inject({ method: 'POST', url, headers, payload })).json<Body>();
}

async function enabled(): Promise<Record<string, boolean>> {
  const answer = await server.inject({ url: '/admin/v1/licenses', headers: { authorization } });
  const { data } = answer.json<{ data: { licenses: { license_key: string; enabled: boolean }[] } }>();
  return Object.fromEntries(data.licenses.map((license) => [license.license_key, license.enabled]));
}

const rowOf = (key: string, more: object = {}): object => {
  return { license_key: key, buyer_email: 'a@example.com', product_key: 'press', ...more };
};

test.each(['licenses', 'purchases'])(
  'CSV of %s with a column that looks like a state is refused until the column is dismissed',
  async (noun) => {
    const csv = 'license_key,buyer_email,Status,note\nA,a@example.com,revoked,x\n';
    for (const query of ['product_key=press', 'product_key=press&dry_run=true']) {
      const { errors = [] } = await send(`${noun}/import?${query}`, csv);
      expect(errors).toMatchObject([{ parameter: noun }]);
      expect(errors[0]?.detail).toContain('columns that look like states and would be ignored: Status.');
    }
    expect(await enabled()).toEqual({});
    const { data } = await send(`${noun}/import?product_key=press&ignore=Status`, csv);
    expect(data).toEqual({ imported: 1, unchanged: 0, ignored: ['Status', 'note'], rejected: [] });
  },
);

test('CSV of coupons with a column that looks like a state is refused', async () => {
  const csv = 'code,coupon_type,percent_off,expires_at\nA,multi,5,2020-01-01\n';
  const { errors = [] } = await send('coupons/import', csv);
  expect(errors[0]?.detail).toContain('the parameter map, such as end_date=expires_at, or dismiss');
});

test('the end of keys is offered as the end of licenses', async () => {
  const csv = 'license_key,buyer_email,Status,Valid until\nA,a@example.com,active,2020-01-01\n';
  const { errors = [] } = await send('licenses/import?product_key=press', csv);
  expect(errors[0]?.detail).toContain('such as expires_at=Valid until,enabled=Status:active|inactive, or');
});

test.each(['none', 'Never', 'lifetime', 'Perpetual', 'unlimited', 'unbegrenzt', ' unbefristet '])(
  'a license whose end is called %j never ends',
  async (cell) => {
    const csv = `license_key,buyer_email,product_key,expires_at\nA,a@example.com,press,${cell}\n`;
    const { data } = await send('licenses/import', csv);
    expect(data).toMatchObject({ imported: 1, rejected: [] });
    expect((await opened.app.reader.licenses.get('A')) ?? {}).not.toHaveProperty('expiresAt');
    const again = await send('licenses/import', csv);
    expect(again.data).toMatchObject({ unchanged: 1 });
    const ended = await send('licenses/import', csv.replace(cell, '2030-01-01'));
    expect(ended.data?.rejected).toMatchObject([{ code: 'license_key_taken' }]);
  },
);

test('a license that was refunded is imported disabled, also without its purchase', async () => {
  const rows = [
    rowOf('BY-DATE', { refunded_at: '2024-03-01' }),
    rowOf('BY-FLAG', { refunded: 'yes', enabled: 'true' }),
    rowOf('NOT', { refunded: 'no', refunded_at: 'NULL' }),
    rowOf('AGAIN', { refunded_at: '2024-03-01', enabled: 'true' }),
    rowOf('BOTH', { refunded: 'no', refunded_at: '2024-03-01' }),
  ];
  for (const noun of ['licenses', 'purchases']) {
    const { data } = await send(`${noun}/import`, { [noun]: rows });
    expect(data).toMatchObject({
      imported: 4,
      rejected: [{ row: 5, code: 'excluded', detail: 'refunded is false, but refunded_at has a date.' }],
    });
    expect(await enabled()).toEqual({ 'BY-DATE': false, 'BY-FLAG': false, NOT: true, AGAIN: true });
    const again = await send(`${noun}/import`, { [noun]: rows });
    expect(again.data).toMatchObject({ imported: 0, unchanged: 4 });
  }
});

test('in a column with numbers other than 0 and 1, no number is read as true or false', async () => {
  const licenses = [1, '0', 2, '3', 4, 'true'].map((state, index) => rowOf(`K${index}`, { enabled: state }));
  const { data } = await send('licenses/import', { licenses });
  expect(data?.rejected.map(({ row, code }) => [row, code])).toEqual(
    [1, 2, 3, 4, 5].map((row) => [row, 'not_a_boolean']),
  );
  expect(await enabled()).toEqual({ K5: true });
});

const one = '7B3F-19AC-55D0';
const two = '0C4E-8A21-F6B7';
const lists = [
  ', ',
  ',',
  '; ',
  '|',
  '\n',
  '\r\n',
  '\t',
  ' ',
  ' / ',
  ' & ',
  ' + ',
  ' and ',
  '<br>',
  '<br />',
  '","',
];

test.each(lists)('a cell with two keys is not imported as one license: %j', async (separator) => {
  const list = `${one}${separator}${two}`;
  // A list of JSON.
  const key = separator.includes('"') ? `["${list}"]` : list;
  const detail = 'license_key has several keys: give each of them a row of its own.';
  for (const noun of ['licenses', 'purchases']) {
    const csv = `license_key,buyer_email,product_key\n"${key.replaceAll('"', '""')}",a@example.com,press\n`;
    const { data } = await send(`${noun}/import`, csv);
    expect(data?.rejected).toEqual([{ row: separator.includes('\n') ? 3 : 2, code: 'malformed', detail }]);
  }
  const sold = await send('purchases', rowOf(key));
  expect(sold.errors).toMatchObject([{ detail }]);
  expect(await enabled()).toEqual({});
});

test.each(['ABCD EFGH IJKL MNOP', 'a,b', 'Müller, Anna', '=cmd, "A"', 'AB|CD'])(
  'a key with a separator in it is imported as one license: %s',
  async (key) => {
    await send('licenses/import', { licenses: [rowOf(key)] });
    expect(await enabled()).toEqual({ [key]: true });
  },
);

test.each([
  ['2024-02-22 11:23:05 UTC', '2024-02-22T11:23:05+00:00'],
  ['2024-02-22 11:23:05 +0000', '2024-02-22T11:23:05+00:00'],
  ['2024-02-22T11:23:05+0200', '2024-02-22T09:23:05+00:00'],
  ['2024-02-22 11:23:05.123456+00', '2024-02-22T11:23:05+00:00'],
  ['2024-02-22 11:23', '2024-02-22T11:23:00+00:00'],
  ['2024-02-22T11:23Z', '2024-02-22T11:23:00+00:00'],
  ['2024-02-22 11:23 GMT', '2024-02-22T11:23:00+00:00'],
])('a date is read as databases write it: %s', async (text, date) => {
  await send('licenses/import', { licenses: [rowOf('A', { date: text })] });
  const answer = await server.inject({ url: '/admin/v1/licenses', headers: { authorization } });
  expect(answer.json()).toMatchObject({ data: { licenses: [{ date }] } });
});

test.each([
  '2024-02-22 11',
  '2024-02-22 25:00',
  '2024-02-22 11:23 PST',
  '2024-02-22 11:23:05 +02:0',
  '0000-01-00',
])('a date that cannot be read is rejected: %s', async (text) => {
  const { data } = await send('licenses/import', { licenses: [rowOf('A', { date: text })] });
  expect(data?.rejected).toMatchObject([{ row: 1, code: 'not_a_datetime' }]);
});

test.each([
  '',
  '-',
  'NULL',
  'null',
  'N/A',
  'n/a',
  '\\N',
  '0000-00-00',
  '0000-00-00 00:00:00',
  '0000-00-00 00:00:00 UTC',
])('a cell that says that it has no value is empty: %j', async (cell) => {
  const row = rowOf('A', { uses: cell, refunded_at: cell, date: cell, purchase_id: cell });
  const { data } = await send('purchases/import', { purchases: [row] });
  expect(data).toMatchObject({ imported: 1, rejected: [] });
  expect(await enabled()).toEqual({ A: true });
  const { data: without } = await send('licenses/import', { licenses: [rowOf(cell)] });
  expect(without?.rejected).toMatchObject([{ row: 1, code: 'required' }]);
});
