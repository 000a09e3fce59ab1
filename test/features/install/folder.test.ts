import { readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runProcess } from '../../support/process/command-line.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

// Nothing can be made under /proc, whoever asks. In a process of its own each, since one that goes on and on is ended.
test.runIf(process.platform === 'linux').each([
  [
    ['certificate', 'make', '--host', 'localhost', '--out', '/proc/x/tls'],
    'cannot write to /proc/x/tls: no such file or directory',
  ],
  [
    ['init', '--authority', '--config', '/proc/x/latchkey.yaml'],
    '/proc/x/latchkey.yaml cannot be written: no such file or directory',
  ],
  [
    ['init', '--authority', '--yes', '--config', '/dev/null/latchkey.yaml'],
    '/dev/null/latchkey.yaml cannot be written: not a directory',
  ],
  [
    ['service', 'install', '--root', '/proc/x'],
    '/proc/x/etc/systemd/system/latchkey.service cannot be changed: no such file or directory',
  ],
])('latchkey %j reports a folder that cannot be created', async (argv, told) => {
  const { code, err } = await runProcess(argv);
  expect(code).toBe(1);
  expect(err).toContain(`latchkey: ${told}`);
});

test('certificate make removes its files if one of them cannot be written', async () => {
  await using temporary = temporaryDirectory();
  // Seen by nobody who looks whether something is there, and in the way of who writes.
  symlinkSync('nowhere', join(temporary.path, 'key.pem'));
  const argv = ['certificate', 'make', '--host', 'localhost', '--out', temporary.path];
  expect(await runProcess(argv)).toMatchObject({ code: 1 });
  expect(readdirSync(temporary.path)).toEqual(['key.pem']);
  rmSync(join(temporary.path, 'key.pem'));
  expect(await runProcess(argv)).toMatchObject({ code: 0 });
  expect(readdirSync(temporary.path).sort()).toEqual(['ca.pem', 'cert.pem', 'key.pem']);
});
