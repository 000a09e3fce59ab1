import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { problem, startFakeDaemon } from '../support/process/fake-daemon.ts';
import { ownerOnly } from '../support/platform.ts';

test('backup writes a new file that only its owner can read', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ headers: { 'content-type': 'application/octet-stream' }, body: 'all of it' });
  const file = join(daemon.stateDir, 'copy.db');
  const { code, out, err } = await latchkey('backup', file, '--state-dir', daemon.stateDir);
  expect({ code, out, err }).toEqual({ code: 0, out: `${file}: 9 bytes\n`, err: '' });
  expect(readFileSync(file, 'utf8')).toBe('all of it');
  expect((statSync(file).mode & 0o777).toString(8)).toBe(ownerOnly);
  expect(daemon.received[0]?.line).toBe('GET /admin/v1/backup');
});

test('backup --json names the file and its size', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: 'all of it' });
  const file = join(daemon.stateDir, 'copy.db');
  const { out } = await latchkey('backup', file, '--json', '--state-dir', daemon.stateDir);
  expect(JSON.parse(out)).toEqual({ file, bytes: 9 });
});

test('backup does not overwrite a file, and sends no request', async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'copy.db');
  writeFileSync(file, 'precious');
  const { code, err } = await latchkey('backup', file, '--state-dir', daemon.stateDir);
  expect(code).toBe(1);
  expect(err).toContain(`latchkey: cannot create ${file}: `);
  expect(readFileSync(file, 'utf8')).toBe('precious');
  expect(daemon.received).toEqual([]);
});

test('backup leaves no file behind when the daemon refuses', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer(problem(409, 'backup_running'));
  const file = join(daemon.stateDir, 'copy.db');
  const { code, err } = await latchkey('backup', file, '--state-dir', daemon.stateDir);
  expect(code).toBe(1);
  expect(err).toContain('backup_running');
  expect(existsSync(file)).toBe(false);
});

test('backup leaves no file behind when the connection breaks', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ headers: { 'content-length': '1000000', connection: 'close' }, body: 'the beginning' });
  const file = join(daemon.stateDir, 'copy.db');
  const { code } = await latchkey('backup', file, '--state-dir', daemon.stateDir);
  expect(code).not.toBe(0);
  expect(existsSync(file)).toBe(false);
});

test('backup reports a file that cannot be created', async () => {
  await using daemon = await startFakeDaemon();
  const file = join(daemon.stateDir, 'nowhere', 'copy.db');
  const { code, err } = await latchkey('backup', file, '--state-dir', daemon.stateDir);
  expect({ code, err }).toEqual({
    code: 1,
    err: `latchkey: cannot create ${file}: no such file or directory\n`,
  });
});

test.for(['backup', 'license export', 'purchase export', 'coupon export'])(
  'latchkey %s - is a usage error, and writes no file named -',
  async (words) => {
    await using daemon = await startFakeDaemon();
    const outcome = await latchkey(...words.split(' '), '-', '--state-dir', daemon.stateDir);
    const isThere = existsSync('-');
    if (isThere) rmSync('-');
    expect({ ...outcome, isThere }).toEqual({
      code: 2,
      out: '',
      err: `latchkey: Give a file name; - is not allowed here\nSee: latchkey ${words} --help\n`,
      isThere: false,
    });
    expect(daemon.received).toEqual([]);
  },
);
