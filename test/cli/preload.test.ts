import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { startFakeDaemon } from '../support/process/fake-daemon.ts';

test('preload prints the number of queued keys, not of lines', async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'keys.txt');
  await writeFile(file, 'A\nA\nB\n');
  daemon.answer({ body: { data: { queued: 2 } } });
  const { out } = await latchkey('preload', file, '--state-dir', daemon.stateDir);
  expect(out).toContain('2 license keys are queued.');
  expect(daemon.received).toMatchObject([{ body: '{"license_keys":["A","A","B"]}' }]);
});

test('preload sends the column license_key of a CSV file, with the product', async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'keys.csv');
  await writeFile(file, 'buyer,license_key,uses\na@example.com,A,1\nb@example.com,B,2\n');
  daemon.answer({ body: { data: { queued: 2 } } });
  const { code } = await latchkey('preload', file, '--product', 'RGsF', '--state-dir', daemon.stateDir);
  expect(code).toBe(0);
  expect(daemon.received).toMatchObject([{ body: '{"license_keys":["A","B"],"product_key":"RGsF"}' }]);
});

test.each([
  [[], 'name a file of license keys, or give --from-store'],
  [['keys.txt', '--from-store'], 'name a file of license keys, or give --from-store'],
  [['keys.txt', '--after', 'x'], '--after is for --from-store'],
])('preload %j is not understood', async (argv, why) => {
  const { code, err } = await latchkey('preload', ...argv);
  expect([code, err]).toEqual([2, expect.stringContaining(why)]);
});

test('preload --from-store queues 1,000 license keys of one product at a time, and says where the rest begins', async () => {
  await using daemon = await startFakeDaemon();
  const page = (product: string, from: number, next: string | null): object => ({
    data: {
      product_key: product,
      license_keys: Array.from({ length: 600 }, (_, n) => `K-${from + n}`),
      next,
    },
  });
  daemon.answer(
    { body: page('A', 0, 'two') },
    { body: page('A', 600, 'three') },
    { body: { data: { queued: 1_200 } } },
    { body: page('A', 1_200, 'four') },
    { body: page('B', 1_800, 'five') },
    { body: { data: { queued: 600 } } },
    { status: 503, body: { title: 'Away', code: 'upstream_unreachable' } },
    { status: 507, body: { title: 'The storage is full', code: 'storage_full' } },
  );
  const { code, out, err } = await latchkey('preload', '--from-store', '--state-dir', daemon.stateDir);
  const goOn = (after: string): string =>
    `for the rest: latchkey --state-dir ${daemon.stateDir} preload --from-store --after ${after}\n`;
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(err).toBe(
    `1200 license keys are queued; ${goOn('three')}latchkey: Away (upstream_unreachable)\n1800 license keys are queued; ${goOn('four')}`,
  );
  const posts = daemon.received.filter(({ line }) => line.startsWith('POST'));
  expect(posts.map(({ body }) => (JSON.parse(body) as { product_key: string }).product_key)).toEqual([
    'A',
    'A',
    'B',
  ]);
});

test('preload sends a long list in parts and counts all queued keys', async () => {
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
])('preload rejects a file without license keys: %j', async (text, reason) => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'keys.csv');
  await writeFile(file, text);
  const { code, err } = await latchkey('preload', file, '--state-dir', daemon.stateDir);
  expect([code, err]).toEqual([1, `latchkey: cannot read ${file}: ${reason}\n`]);
  expect(daemon.received).toEqual([]);
});

test("preload prints the daemon's error and no number", async () => {
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

test('preload rejects a file with semicolons between its cells', async () => {
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
