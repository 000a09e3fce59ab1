import { spawnSync } from 'node:child_process';
import { chown, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { isWindows } from '../support/platform.ts';
import { type FakeDaemon, license, startFakeDaemon } from '../support/process/fake-daemon.ts';

const isRoot = process.getuid?.() === 0;
const stranger = 54_321;

async function startLicenseDaemon(): Promise<FakeDaemon> {
  const daemon = await startFakeDaemon();
  daemon.answer({ body: { data: license } });
  return daemon;
}

test('commands report a missing admin token', async () => {
  await using daemon = await startLicenseDaemon();
  const file = join(daemon.stateDir, 'admin.token');
  await rm(file);
  const { code, err } = await latchkey('verify', 'K', '--state-dir', daemon.stateDir);
  expect(code).toBe(1);
  expect(err).toContain(`latchkey: cannot read ${file}: no such file or directory`);
});

// Node reads through links on Windows, where only administrators may make them.
test.skipIf(isWindows).each(['admin.token', 'listen.json'])('%s is not read through a link', async (name) => {
  await using daemon = await startLicenseDaemon();
  const file = join(daemon.stateDir, name);
  await rename(file, `${file}.kept`);
  await symlink(`${file}.kept`, file);
  const { code, err } = await latchkey('verify', 'K', '--state-dir', daemon.stateDir);
  expect(code).toBe(1);
  expect(err).toContain(`latchkey: cannot read ${file}: it is a link`);
  expect(daemon.received).toEqual([]);
});

test.runIf(spawnSync('mkfifo', ['--version']).status === 0)(
  'a pipe at the path of the admin token does not block a command (skipped without mkfifo)',
  async () => {
    await using daemon = await startLicenseDaemon();
    const file = join(daemon.stateDir, 'admin.token');
    await rm(file);
    expect(spawnSync('mkfifo', [file]).status).toBe(0);
    const { code, err } = await latchkey('verify', 'K', '--state-dir', daemon.stateDir);
    expect(code).toBe(1);
    expect(err).toContain(`latchkey: cannot read ${file}: it is not a regular file`);
  },
);

test.skipIf(!isRoot).each(['admin.token', 'listen.json'])(
  'commands do not read the %s of another user',
  async (name) => {
    await using daemon = await startLicenseDaemon();
    const file = join(daemon.stateDir, name);
    await chown(file, stranger, stranger);
    const { code, err } = await latchkey('verify', 'K', '--state-dir', daemon.stateDir);
    expect(code).toBe(1);
    expect(err).toContain(`latchkey: cannot read ${file}: it belongs to user ${stranger}`);
    expect(daemon.received).toEqual([]);
  },
);
