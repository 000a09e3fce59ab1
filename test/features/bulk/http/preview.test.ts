import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { adminToken, openApp, serverOf } from '../../../support/app/http-app.ts';

const authorization = `Bearer ${adminToken}`;

let opened: Awaited<ReturnType<typeof openApp>>;
let server: FastifyInstance;
beforeEach(async () => {
  opened = await openApp();
  server = serverOf(opened.app);
});
afterEach(async () => {
  await opened[Symbol.asyncDispose]();
});

type Column = {
  name: string;
  values: string[];
  read_as: string | null;
  how: string | null;
  by_store: boolean;
  state: boolean;
  needs_order: boolean;
  words: { word: string; enabled: boolean | null; refunded: boolean | null }[];
};
type Preview = {
  separator: string;
  encoding: string;
  reading: string;
  from: string | null;
  columns: Column[];
  missing: string[];
  rows: { line: number; cells: Record<string, string> | null; detail: string | null }[];
};

async function preview(noun: string, query: Record<string, string>, file: string | Buffer) {
  const response = await server.inject({
    method: 'POST',
    url: `/admin/v1/${noun}s/import/preview`,
    query,
    headers: { authorization, 'content-type': 'text/csv' },
    payload: file,
  });
  const body = response.json<{
    data: Preview;
    code?: string;
    errors?: { parameter: string; detail: string }[];
  }>();
  return { status: response.statusCode, ...body };
}

const germanLines = [
  'Lizenzschlüssel;E-Mail;Datum;Zustand;Gesperrt;Bemerkung',
  'ÄNNE-1;müller@example.com;01.02.2025;aktiv;nein;Stammkunde',
  'B-2;b@example.com;13.02.2025;gekündigt;ja;',
  'C-3;c@example.com;28.02.2025;;nein;',
  'D-4;d@example.com;28.02.2025;aktiv;nein;',
];
const german = Buffer.from(germanLines.join('\r\n'), 'latin1');

test('the separator, the encoding, the columns, the dates and the words of a German file are recognized', async () => {
  const { data } = await preview('license', {}, german);
  expect(data).toMatchObject({
    separator: 'semicolon',
    encoding: 'windows-1252',
    reading: 'Lizenzschlüssel',
    from: null,
    missing: [],
  });
  expect(data.columns.map(({ name, read_as: as, how }) => [name, as, how])).toEqual([
    ['Lizenzschlüssel', 'license_key', null],
    ['E-Mail', 'buyer_email', null],
    ['Datum', 'date', 'D.M.Y'],
    ['Zustand', 'enabled', null],
    ['Gesperrt', null, null],
    ['Bemerkung', null, null],
  ]);
  expect(data.columns.map(({ state }) => state)).toEqual([false, false, false, true, true, false]);
  expect(data.columns[2]).toMatchObject({
    values: ['01.02.2025', '13.02.2025', '28.02.2025'],
    needs_order: true,
  });
  expect(data.columns[3]?.words).toEqual([
    { word: 'aktiv', enabled: true, refunded: null },
    { word: 'gekündigt', enabled: false, refunded: null },
    { word: '-', enabled: null, refunded: null },
  ]);
  // Only a person knows that a yes in this column means that the key is disabled.
  expect(data.columns[4]?.words).toEqual([
    { word: 'nein', enabled: null, refunded: null },
    { word: 'ja', enabled: null, refunded: null },
  ]);
  expect(data.rows[0]).toEqual({
    line: 2,
    cells: { license_key: 'ÄNNE-1', buyer_email: 'müller@example.com', date: '2025-02-01' },
    detail: null,
  });
  expect(data.rows).toHaveLength(3);
});

test('the first rows are read as a person has mapped the columns, and ignored states stay named', async () => {
  const map = 'license_key=Lizenzschlüssel,buyer_email=E-Mail,enabled=Gesperrt:nein|ja,date=Datum:D.M.Y';
  const { data } = await preview('license', { guess: 'false', map, ignore: 'Zustand' }, german);
  expect(data.rows.map(({ cells }) => [cells?.['license_key'], cells?.['enabled'], cells?.['date']])).toEqual(
    [
      ['ÄNNE-1', 'true', '2025-02-01'],
      ['B-2', 'false', '2025-02-13'],
      ['C-3', 'true', '2025-02-28'],
    ],
  );
  const { data: without } = await preview('license', { guess: 'false', map: 'uses=Bemerkung' }, german);
  expect(without.missing).toEqual(['license_key', 'buyer_email']);
});

test('a row that is not understood says which cell is wrong', async () => {
  const map = 'license_key=Lizenzschlüssel,buyer_email=E-Mail,enabled=Zustand:aktiv|gekündigt';
  const { data } = await preview('license', { guess: 'false', map }, german);
  expect(data.rows[2]).toEqual({
    line: 4,
    cells: null,
    detail: 'has "" in Zustand, which is not in aktiv|gekündigt',
  });
});

test('an export of this program needs no decision of a person', async () => {
  const file =
    'license_key,product_key,buyer_email,uses,enabled,date\nA,P,a@example.com,1,true,2025-01-02T03:04:05Z\n';
  const { data } = await preview('license', {}, file);
  expect(data.columns.map(({ read_as: as }) => as)).toEqual(data.columns.map(({ name }) => name));
  expect(data.columns.filter(({ how, needs_order: needsOrder }) => how !== null || needsOrder)).toEqual([]);
  expect(data.columns.find(({ name }) => name === 'enabled')?.words).toEqual([]);
  expect(data.missing).toEqual([]);
});

test.each([
  ['WAHR', 'FALSCH'],
  ['true', 'false'],
  ['1', '0'],
  ['ja', 'nein'],
])(
  'the words %s and %s of a column Aktiv are enabled and disabled, also if the file has only one',
  async (yes, no) => {
    const { data } = await preview('license', {}, `Key\tMail\tAktiv\nA\ta@example.com\t${yes}\n`);
    expect(data.separator).toBe('tab');
    expect(data.columns[2]).toMatchObject({
      read_as: 'enabled',
      how: `${yes.toLowerCase()}|${no.toLowerCase()}`,
    });
    expect(data.rows[0]?.cells).toEqual({ license_key: 'A', buyer_email: 'a@example.com', enabled: 'true' });
  },
);

test('a column with an end date is read as the end of a license', async () => {
  const file =
    'key,email,Expiry date\nA,a@example.com,2020-01-01\nB,b@example.com,2998-01-01\nC,c@example.com,\n';
  const { data } = await preview('license', {}, file);
  expect(data.columns[2]).toMatchObject({ read_as: 'expires_at', how: null });
  expect(data.rows.map(({ cells }) => cells?.['expires_at'])).toEqual([
    '2020-01-01',
    '2998-01-01',
    undefined,
  ]);
});

test.each(['Valid until', 'expires', 'Ablaufdatum', 'Subscription end date', 'gültig_bis', 'Enddatum'])(
  'a column that is called like an end is offered as the end of a license, with the order of its dates: %s',
  async (name) => {
    const file = `key,email,${name}\nA,a@example.com,31.12.2090\nB,b@example.com,unbegrenzt\nC,c@example.com,\n`;
    const { data } = await preview('license', {}, file);
    expect(data.columns[2]).toMatchObject({ read_as: 'expires_at', how: 'D.M.Y', state: true });
    expect(data.rows.map(({ cells }) => cells?.['expires_at'])).toEqual([
      '2090-12-31',
      'unbegrenzt',
      undefined,
    ]);
  },
);

test('a column of yes and no that is called like an end is left to a person', async () => {
  const { data } = await preview('license', {}, 'key,email,Expires\nA,a@example.com,no\n');
  expect(data.columns[2]).toMatchObject({ read_as: null, state: true });
});

test('dates in a column of a state are one word', async () => {
  const file =
    'key,email,Gesperrt am\nA,a@example.com,2025-01-02\nB,b@example.com,03.02.2025\nC,c@example.com,\n';
  const { data } = await preview('license', {}, file);
  expect(data.columns[2]).toMatchObject({ read_as: null, state: true });
  expect(data.columns[2]?.words.map(({ word }) => word)).toEqual(['-', '*']);
});

test('the limit of activations of another store is offered as seats', async () => {
  const { data } = await preview('license', {}, 'key,email,activation_limit\nA,a@example.com,3\n');
  expect(data.columns[2]).toMatchObject({ read_as: 'seats' });
});

test('a date with slashes that could be a day or a month first is left to a person', async () => {
  const file = 'key,email,date\nA,a@example.com,01/02/2025\n';
  expect((await preview('license', {}, file)).data.columns[2]).toMatchObject({
    how: null,
    needs_order: true,
  });
  const clear = `${file}B,b@example.com,13/02/2025\n`;
  expect((await preview('license', {}, clear)).data.columns[2]).toMatchObject({ how: 'D/M/Y' });
});

test('the sales of Gumroad are recognized, unless a person says that they are of another program', async () => {
  const file =
    'Purchase ID,Purchase Email,License Key,Product ID,Purchase Date,License Key Enabled?,Refunded?,Dispute Won?,Disputed?\n' +
    '1,a@example.com,AAAA,P,2025-01-02,1,0,0,0\n';
  const { data } = await preview('purchase', {}, file);
  expect(data.from).toBe('gumroad');
  expect(data.columns.filter(({ by_store: isByStore }) => isByStore).map(({ read_as: as }) => as)).toEqual([
    'purchase_id',
    'buyer_email',
    'license_key',
    'product_key',
    'date',
    'enabled',
    'refunded',
    'enabled',
  ]);
  // It only says when a dispute does not count.
  expect(data.columns.find(({ name }) => name === 'Dispute Won?')?.state).toBe(false);
  const other = await preview('purchase', { from: 'other' }, file);
  expect(other.data.from).toBeNull();
  expect(other.data.columns.some(({ by_store: isByStore }) => isByStore)).toBe(false);
});

test('a beginning that ends within a row is read as far as it goes', async () => {
  const file = `license_key,buyer_email\nA,a@example.com\nB,"b@exam`;
  expect((await preview('license', {}, file)).data.rows.map(({ line }) => line)).toEqual([2]);
});

test('columns of coupons are recognized, and amounts of another store are left to a person', async () => {
  const file = 'Code;Typ;Betrag;Gültig bis\nSPRING;multi;5,00;31.12.2025\n';
  const { data } = await preview('coupon', {}, file);
  expect(data.columns.map(({ read_as: as, how }) => [as, how])).toEqual([
    ['code', null],
    ['coupon_type', null],
    ['amount_off', null],
    ['end_date', 'D.M.Y'],
  ]);
});

test('a mapping that does not fit the file is an error of the parameter map', async () => {
  const { status, errors } = await preview(
    'license',
    { guess: 'false', map: 'uses=Nope' },
    'license_key,buyer_email\nA,b\n',
  );
  expect(status).toBe(422);
  expect(errors).toEqual([
    {
      parameter: 'map',
      code: 'malformed',
      detail: 'map says uses=Nope: the header has license_key, buyer_email.',
    },
  ]);
});

test.each([
  ['an empty file', ''],
  ['a file in UTF-16', Buffer.from('license_key,buyer_email\nA,b\n', 'utf16le')],
])('%s is refused', async (_, file) => {
  expect((await preview('license', {}, file)).code).toBe('malformed_body');
});

test.each(['constructor', '__proto__', 'toString'])('a column may have the name %s', async (name) => {
  const file = `license_key,buyer_email,${name}\nA,a@example.com,\nB,b@example.com,7\n`;
  const { data } = await preview('license', {}, file);
  expect(data.columns[2]).toMatchObject({ name, values: ['', '7'] });
  const mapped = await preview('license', { guess: 'false', map: `uses=${name}` }, file);
  expect(mapped.data.rows.map(({ cells }) => cells?.['uses'])).toEqual([undefined, '7']);
});

test('a date can only be read in an order that is known', async () => {
  const file = 'license_key,buyer_email,Datum\nA,a@example.com,1.2.2025\n';
  const { status, errors } = await preview(
    'license',
    { guess: 'false', map: 'date=Datum:constructor' },
    file,
  );
  expect(status).toBe(422);
  expect(errors?.[0]?.detail).toContain('map says date=Datum:constructor');
});

test('words that a mapping cannot have, and long ones, are among the other words', async () => {
  const words = ['active', 'on:hold', 'a=b', 'x'.repeat(65)];
  const lines = words.map((word, index) => `K${index},a@example.com,${word}`);
  const file = ['license_key,buyer_email,Status', ...lines].join('\n');
  const { data } = await preview('license', {}, file);
  expect(data.columns[2]?.words.map(({ word }) => word)).toEqual(['active', '*']);
  const map = 'enabled=Status:active|*';
  const { data: mapped } = await preview('license', { guess: 'false', map }, file);
  expect(mapped.rows.map(({ cells }) => cells?.['enabled'])).toEqual(['true', 'false', 'false']);
});

test('a preview of a file with many columns looks at fewer rows, and shows the beginning of long cells', async () => {
  const names = Array.from({ length: 997 }, (_, index) => `c${index}`);
  const row = (status: string): string => `K,a@example.com,${status}${',x'.repeat(997)}`;
  const rows = [row('active'), ...Array<string>(300).fill(row('y'.repeat(300))), row('last')];
  const { data } = await preview(
    'license',
    {},
    [`license_key,buyer_email,status,${names.join()}`, ...rows].join('\n'),
  );
  expect(data.columns).toHaveLength(1_000);
  expect(data.columns[2]?.values).toEqual(['active', 'y'.repeat(200), 'y'.repeat(200)]);
  expect(data.columns[2]?.words.map(({ word }) => word)).toEqual(['active', '*']);
});
