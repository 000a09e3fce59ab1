import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { startFakeDaemon } from '../support/process/fake-daemon.ts';

test('preload says how many license keys the agent has queued, not how many lines the file has', async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'keys.txt');
  await writeFile(file, 'A\nA\nB\n');
  daemon.answer({ body: { data: { queued: 2 } } });
  const { out } = await latchkey('preload', file, '--state-dir', daemon.stateDir);
  expect(out).toContain('2 license keys are queued.');
  expect(daemon.received).toMatchObject([{ body: '{"license_keys":["A","A","B"]}' }]);
});

test('of CSV the column license_key is sent, with the product that is named', async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'keys.csv');
  await writeFile(file, 'buyer,license_key,uses\na@example.com,A,1\nb@example.com,B,2\n');
  daemon.answer({ body: { data: { queued: 2 } } });
  const { code } = await latchkey('preload', file, '--product', 'RGsF', '--state-dir', daemon.stateDir);
  expect(code).toBe(0);
  expect(daemon.received).toMatchObject([{ body: '{"license_keys":["A","B"],"product_key":"RGsF"}' }]);
});

test('a long list is sent in parts, and all that is queued is counted', async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'keys.txt');
  const keys = Array.from({ length: 10_001 }, (_, number) => `K-${number}`);
  await writeFile(file, keys.join('\n'));
  daemon.answer({ body: { data: { queued: 3 } } });
  const { out } = await latchkey('preload', file, '--json', '--state-dir', daemon.stateDir);
  expect(JSON.parse(out)).toEqual({ queued: 9 });
  const sent = daemon.received.map(
    ({ body }) => (JSON.parse(body) as { license_keys: string[] }).license_keys,
  );
  expect(sent.map(({ length }) => length)).toEqual([5_000, 5_000, 1]);
  expect(sent.flat()).toEqual(keys);
});

test.each([
  ['buyer,uses\na@example.com,1\n', 'The header does not name license_key.'],
  ['buyer,license_key\na@example.com,A\nb@example.com,\n', 'Line 3 has no license key.'],
])('a file without license keys is told, and nothing of it is sent: %j', async (text, reason) => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'keys.csv');
  await writeFile(file, text);
  const { code, err } = await latchkey('preload', file, '--state-dir', daemon.stateDir);
  expect([code, err]).toEqual([1, `latchkey: cannot read ${file}: ${reason}\n`]);
  expect(daemon.received).toEqual([]);
});

test('why license keys cannot be queued is said, and no number of them', async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'keys.txt');
  await writeFile(file, 'A\n');
  daemon.answer({ status: 507, body: { title: 'The storage is full', code: 'storage_full' } });
  expect(await latchkey('preload', file, '--state-dir', daemon.stateDir)).toEqual({
    code: 1,
    out: '',
    err: 'latchkey: The storage is full (storage_full)\n',
  });
});

test('a file with semicolons between its cells is no list of license keys', async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'keys.csv');
  await writeFile(file, 'license_key;buyer_email\nA;a@example.com\n');
  const { code, err } = await latchkey('preload', file, '--state-dir', daemon.stateDir);
  expect([code, err]).toEqual([
    1,
    `latchkey: cannot read ${file}: The header has semicolons between its cells: save the file with commas.\n`,
  ]);
  expect(daemon.received).toEqual([]);

  // Without a header it may be a key.
  await writeFile(file, 'A;1\n');
  daemon.answer({ body: { data: { queued: 1 } } });
  expect((await latchkey('preload', file, '--state-dir', daemon.stateDir)).code).toBe(0);
  expect(daemon.received).toMatchObject([{ body: '{"license_keys":["A;1"]}' }]);
});
