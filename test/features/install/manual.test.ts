import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { commands } from '../../../src/cli/commands.ts';
import { latchkey } from '../../support/process/command-line.ts';
import { isInstalled } from '../../support/process/shell-completion.ts';

async function printManual(): Promise<string> {
  const { code, out, err } = await latchkey('man');
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return out;
}

test('the manual page has every command, its options and the exit codes', async () => {
  const text = (await printManual()).replaceAll(String.raw`\-`, '-');
  for (const entry of commands) expect(text).toContain(`\n.SS latchkey ${entry.name}`);
  expect(text).toContain('.SS latchkey outbox retry <id>\nSend a change again');
  expect(text).toContain('.B --check\n');
  expect(text).toContain('.B 69\n');
  expect(text).toMatch(/^\.SH ENVIRONMENT\n[^]*LATCHKEY_TOKEN[^]*^\.SH FILES\n[^]*latchkey\.yaml/m);
});

test('the manual page has the date of SOURCE_DATE_EPOCH', async () => {
  const before = process.env['SOURCE_DATE_EPOCH'];
  process.env['SOURCE_DATE_EPOCH'] = '86400';
  try {
    expect(await printManual()).toMatch(/^\.TH LATCHKEY 1 1970-01-02 /);
  } finally {
    if (before === undefined) delete process.env['SOURCE_DATE_EPOCH'];
    else process.env['SOURCE_DATE_EPOCH'] = before;
  }
});

const checkers = [
  ['mandoc', ['-T', 'lint', '-W', 'style']],
  ['groff', ['-ww', '-man', '-Tutf8', '-z']],
] as const;

for (const [program, argv] of checkers) {
  const isMissing = !isInstalled(program) && spawnSync(program, ['-h']).error !== undefined;
  const note = isMissing ? ` (skipped: ${program} is not installed)` : '';
  test.skipIf(isMissing)(`${program} finds nothing wrong with the manual page${note}`, async () => {
    const input = await printManual();
    const { stdout, stderr, status } = spawnSync(program, argv, { input, encoding: 'utf8' });
    expect({ stdout, stderr, status }).toEqual({ stdout: '', stderr: '', status: 0 });
  });
}
