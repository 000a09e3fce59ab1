import { expect, test } from 'vitest';
import { runProcess } from '../support/command-line.ts';

// Nothing can be made under /proc, whoever asks. In a process of its own each, since one that goes on and on is ended.
test.runIf(process.platform === 'linux').each([
  [['certificate', 'make', '--host', 'localhost', '--out', '/proc/x/tls'], 'cannot write to /proc/x/tls: '],
  [['init', '--authority', '--config', '/proc/x/latchkey.yaml'], '/proc/x/latchkey.yaml cannot be written: '],
  [
    ['service', 'install', '--root', '/proc/x'],
    '/proc/x/etc/systemd/system/latchkey.service cannot be changed: ',
  ],
])('%j ends, and says that the folder cannot be made', async (argv, told) => {
  const { code, err } = await runProcess(argv);
  expect(code).toBe(1);
  expect(err).toContain(`latchkey: ${told}no such file or directory`);
});
