import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { latchkey } from '../support/command-line.ts';
import { startFakeDaemon } from '../support/fake-daemon.ts';

test('preload says how many license keys the agent has queued, not how many lines the file has', async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'keys.txt');
  await writeFile(file, 'A\nA\nB\n');
  daemon.answer({ body: { data: { queued: 2 } } });
  const { out } = await latchkey('preload', file, '--state-dir', daemon.stateDir);
  expect(out).toContain('2 license keys are queued.');
  expect(daemon.received).toMatchObject([{ body: '{"license_keys":["A","A","B"]}' }]);
});
