import { spawnSync } from 'node:child_process';
import { rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { latchkey } from '../support/command-line.ts';
import { startFakeDaemon } from '../support/fake-daemon.ts';

test('a link in place of the admin token is not followed: nothing of what it leads to is sent', async () => {
  await using daemon = await startFakeDaemon();
  const path = join(daemon.stateDir, 'admin.token');
  await rename(path, join(daemon.stateDir, 'elsewhere'));
  await symlink(join(daemon.stateDir, 'elsewhere'), path);
  const { code, err } = await latchkey('verify', 'K', '--state-dir', daemon.stateDir);
  expect(code).toBe(1);
  expect(err).toContain(`latchkey: cannot read the admin token ${path}: too many symbolic links`);
  expect(daemon.received).toEqual([]);
});

test.runIf(spawnSync('mkfifo', ['--version']).status === 0)(
  'a pipe in place of the admin token keeps nobody waiting (skipped without mkfifo)',
  async () => {
    await using daemon = await startFakeDaemon();
    const path = join(daemon.stateDir, 'admin.token');
    await rm(path);
    expect(spawnSync('mkfifo', [path]).status).toBe(0);
    const { code, err } = await latchkey('verify', 'K', '--state-dir', daemon.stateDir);
    expect([code, err.trim()]).toEqual([1, `latchkey: there is no token in ${path}`]);
  },
);
