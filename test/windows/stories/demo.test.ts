import { expect, test } from 'vitest';
import { ownProgram, runProcess } from '../../support/process/command-line.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

test('the demo succeeds', async () => {
  await using home = temporaryDirectory();
  const { code, out, err } = await runProcess(['demo'], {}, ownProgram, home.path);
  expect([code, err]).toEqual([0, '']);
  expect(out).toContain('Every step succeeded.');
});
