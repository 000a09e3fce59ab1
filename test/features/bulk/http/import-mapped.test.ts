import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach, expect, test } from 'vitest';
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

async function send(path: string, query: Record<string, string>, payload: string | Buffer) {
  const headers = { authorization, 'content-type': 'text/csv' };
  const response = await server.inject({ method: 'POST', url: `/admin/v1/${path}`, query, headers, payload });
  return response.json<{
    data?: { imported: number; ignored: string[]; rejected: { row: number; detail: string }[] };
    errors?: { parameter: string; detail: string }[];
    detail?: string;
  }>();
}

async function stored(): Promise<Record<string, boolean>> {
  const answer = await server.inject({ url: '/admin/v1/licenses', headers: { authorization } });
  const { data } = answer.json<{ data: { licenses: { license_key: string; enabled: boolean }[] } }>();
  return Object.fromEntries(data.licenses.map((license) => [license.license_key, license.enabled]));
}

const file = Buffer.from(
  'Schlüssel;Käufer;Status;Notiz\nA;a@example.com;aktiv;ü\nB;b@example.com;gesperrt;\nC;c@example.com;unklar;\n',
  'latin1',
);
const written = { separator: 'semicolon', encoding: 'windows-1252', product_key: 'press' };
const map = 'license_key=Schlüssel,buyer_email=Käufer,enabled=Status:aktiv|gesperrt';

test('CSV is imported with the columns, words, separator and encoding of another program', async () => {
  const { data } = await send('licenses/import', { ...written, map }, file);
  expect(data).toEqual({
    imported: 2,
    unchanged: 0,
    ignored: ['Notiz'],
    rejected: [
      {
        row: 4,
        code: 'malformed',
        detail: 'The row has "unklar" in Status, which is not in aktiv|gesperrt.',
      },
    ],
    without_key: 0,
    renewals: 0,
  });
  expect(await stored()).toEqual({ A: true, B: false });
});

test('with a mapping, a column that looks like a state is refused until it is mapped or dismissed', async () => {
  const some = 'license_key=Schlüssel,buyer_email=Käufer';
  const refused = await send('licenses/import', { ...written, map: some }, file);
  expect(refused.errors?.[0]?.detail).toContain(
    'columns that look like states and would be ignored: Status.',
  );
  const { data } = await send('licenses/import', { ...written, map: some, ignore: 'Status' }, file);
  expect(data).toMatchObject({ imported: 3, ignored: ['Status', 'Notiz'] });
});

test.each([
  ['map', { map: 'uses=Nope' }, 'map says uses=Nope: the header has Schlüssel, Käufer, Status, Notiz.'],
  ['map', { map: 'nope=Status' }, 'map says nope=Status: the columns are license_key,'],
  ['ignore', { map, ignore: 'Nope' }, 'ignore says Nope: the header has'],
])('a wrong %s is an error of that parameter', async (parameter, query, detail) => {
  const { errors } = await send('licenses/import', { ...written, ...query }, file);
  expect(errors).toMatchObject([{ parameter, detail: expect.stringContaining(detail) }]);
  expect(await stored()).toEqual({});
});

test('the sales of Gumroad are imported over HTTP as the command imports them', async () => {
  const sales = await readFile(join(import.meta.dirname, '../cli/gumroad-sales.csv'));
  const { data } = await send('purchases/import', { from: 'gumroad' }, sales);
  expect(data).toMatchObject({ imported: 9, without_key: 2, rejected: [] });
  const again = await send('purchases/import', { from: 'gumroad' }, sales);
  expect(again.data).toMatchObject({ imported: 0, unchanged: 9 });
});

test('an export of a store without the column for the state of its keys is refused', async () => {
  const csv = 'License Key,Purchase Email,Product ID\nA,a@example.com,press\n';
  expect((await send('licenses/import', { from: 'gumroad' }, csv)).detail).toContain(
    'The header has no column license_key_enabled',
  );
});
