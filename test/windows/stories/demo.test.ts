import { expect, test } from 'vitest';
import { fromSource, runProcess, type Program } from '../../support/process/command-line.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const executable: Program | null =
  process.env['LATCHKEY_EXE'] === undefined ? null : [process.env['LATCHKEY_EXE']];

const programs: [name: string, program: Program | null][] = [
  ['the sources', fromSource],
  ['latchkey.exe', executable],
];

for (const [name, program] of programs) {
  test.skipIf(program === null)(`the demo of ${name} succeeds`, async () => {
    await using home = temporaryDirectory();
    const { code, out, err } = await runProcess(['demo'], {}, program ?? fromSource, home.path);
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain('Every step succeeded.');
  });
}
