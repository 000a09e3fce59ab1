import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fromSource, runProcess, type Program } from '../../support/process/command-line.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

/** `npm run build:executable -- --platform win32` makes this file. */
const executable = join(import.meta.dirname, '../../../dist/executable/latchkey.exe');

const programs: [name: string, program: Program][] = [
  ['the sources', fromSource],
  ['latchkey.exe', [executable]],
];

for (const [name, program] of programs) {
  test.skipIf(program !== fromSource && !existsSync(executable))(`the demo of ${name} succeeds`, async () => {
    await using home = temporaryDirectory();
    const { code, out, err } = await runProcess(['demo'], {}, program, home.path);
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain('Every step succeeded.');
  });
}
