import { expect, test } from 'vitest';
import { fromSource, runProcess } from '../../support/process/command-line.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

test('the demo succeeds', async () => {
  await using home = temporaryDirectory();
  const { code, out, err } = await runProcess(['demo'], {}, fromSource, home.path);
  expect([code, err]).toEqual([0, '']);
  expect(out).toContain('Every step succeeded.');
});
