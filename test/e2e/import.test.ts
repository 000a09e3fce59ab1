import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startDaemonProcess, type DaemonProcess } from '../support/process/daemon-process.ts';
import { operate } from '../support/app/people.ts';
import { httpClient } from '../support/network/raw-http.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const configuration = { listen: { tcp: '127.0.0.1:0', socket: false } };
const secret = 'the-secret-of-the-press';

/** An authority with one product, in its own process. */
async function startStore(directory: string): Promise<DaemonProcess> {
  const store = await startDaemonProcess(directory, configuration);
  const file = join(directory, 'secret');
  writeFileSync(file, secret, { mode: 0o600 });
  const added = await operate(directory, 'product', 'add', 'Press', '--key', 'press', '--secret-file', file);
  expect(added).toMatchObject({ code: 0, err: '' });
  return store;
}

/** Another store's export: a byte order mark, CRLF, other column names, and an unused column. */
function theirExport(count: number): string {
  const rows = Array.from({ length: count }, (_, index) => {
    const key = `KEY-${String(index).padStart(6, '0')}`;
    return `${key},"buyer+${index}@example.com",${index % 4},${index % 5 > 0},2024-02-22T11:23:05+00:00,"x, y"`;
  });
  return ['\uFEFFKey,"Mail of the buyer",uses,enabled,date,Note', ...rows, ''].join('\r\n');
}
const map = ['--product', 'press', '--map', 'license_key=Key,buyer_email=Mail of the buyer'];

test('an import reads a catalogue from a file while keys are verified, reports each bad row, and an export writes the same catalogue', async () => {
  await using here = temporaryDirectory();
  await using there = temporaryDirectory();
  await using store = await startStore(here.path);
  const file = join(here.path, 'theirs.csv');
  const bad = [
    'KEY-000001,other@example.com,9,true,,',
    'BAD-MAIL,nobody,0,true,,',
    '',
    `${'K'.repeat(1_025)},long@example.com,0,true,,`,
    'TOO-FEW,few@example.com',
    'LAST,last@example.com,,,,',
  ];
  writeFileSync(file, `${theirExport(10_000)}${bad.join('\r\n')}`);

  const tried = await operate(here.path, 'license', 'import', file, ...map, '--dry-run');
  // A duplicate of a key far above is found only when the first row has been imported.
  expect(tried.out).toBe('10002 would be imported, 0 unchanged, 3 rejected\nIgnored columns: Note\n');
  const importing = operate(here.path, 'license', 'import', file, ...map);
  await using client = httpClient({ tcp: store.tcp });
  const verify = (key: string) =>
    client.get(`/api/v2/license/verify?license_key=${key}`, { headers: { 'product-secret-key': secret } });
  const work = { isDone: false };
  void importing.finally(() => {
    work.isDone = true;
  });
  const statuses = new Set<number>();
  while (!work.isDone) statuses.add((await verify('KEY-000000')).status);
  expect([...statuses].every((status) => status === 200 || status === 404)).toBe(true);
  expect(await importing).toEqual({
    code: 1,
    out: '10001 imported, 0 unchanged, 4 rejected\nIgnored columns: Note\n',
    err: [
      'line 10002: There already is another license with this key.',
      'line 10003: buyer_email must be an e-mail address. It is "nobody".',
      'line 10005: license_key must have at most 1024 characters and 2048 bytes.',
      'line 10006: The row has 2 cells, and the header 6.',
      '',
    ].join('\n'),
  });
  expect((await verify('KEY-000003')).body).toEqual({
    data: {
      license_key: 'KEY-000003',
      enabled: true,
      product_link: 'press',
      buyer_email: 'buyer+3@example.com',
      uses: 3,
      date: '2024-02-22T11:23:05+00:00',
    },
  });
  const again = await operate(here.path, 'license', 'import', file, ...map, '--json');
  expect(JSON.parse(again.out)).toMatchObject({ imported: 0, unchanged: 10_001 });

  const out = join(here.path, 'ours.csv');
  expect((await operate(here.path, 'license', 'export', out)).code).toBe(0);
  expect((statSync(out).mode & 0o777).toString(8)).toBe('600');
  expect((await operate(here.path, 'license', 'export', out)).err).toContain('cannot create');
  await using _ = await startStore(there.path);
  const moved = await operate(there.path, 'license', 'import', out);
  expect(moved).toEqual({ code: 0, out: '10001 imported, 0 unchanged, 0 rejected\n', err: '' });
  const second = join(there.path, 'theirs.csv');
  await operate(there.path, 'license', 'export', second);
  expect(readFileSync(second).equals(readFileSync(out))).toBe(true);
});

test.for<readonly [what: string, content: string | null, said: string]>([
  ['a missing file', null, 'no such file or directory'],
  ['an empty file', '', 'It is empty'],
  ['a file with other column names', 'Key,Mail\nA,a@example.com\n', 'The header does not name license_key'],
])('an import of %s is refused with one line and changes nothing', async ([, content, said]) => {
  await using here = temporaryDirectory();
  await using _ = await startStore(here.path);
  const file = join(here.path, 'file.csv');
  if (content !== null) writeFileSync(file, content);
  const refused = await operate(here.path, 'license', 'import', file);
  expect([refused.code, refused.out]).toEqual([1, '']);
  expect(refused.err).toContain(said);
  expect(refused.err.trimEnd().split('\n')).toHaveLength(1);
});
