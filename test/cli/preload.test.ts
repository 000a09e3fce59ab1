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
