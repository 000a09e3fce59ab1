import { execFile } from 'node:child_process';
import { chmodSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { ownProgram, runProcess, type Outcome } from '../support/process/command-line.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const run = promisify(execFile);
const noService = { RUNTIME_DIRECTORY: '', STATE_DIRECTORY: '', LATCHKEY_LISTEN__TCP: '127.0.0.1:0' };

test('a start in the environment of another user reports that the directory of XDG_RUNTIME_DIR is missing', async () => {
  await using directory = temporaryDirectory();
  const missing = join(directory.path, 'run', '4711');
  const environment = { ...noService, HOME: directory.path, XDG_STATE_HOME: '', XDG_RUNTIME_DIR: missing };
  const { code, err } = await runProcess(['serve'], environment, ownProgram, directory.path);
  expect([code, err]).toEqual([
    1,
    expect.stringMatching(
      /^latchkey: cannot make the directory of .*latchkey\.sock: ENOENT.*; the path follows from XDG_RUNTIME_DIR: correct that variable, or choose another path: --socket$/m,
    ),
  ]);
});

test.each(['HOME', 'XDG_STATE_HOME'])(
  'a start reports %s if no state can be stored below it',
  async (name) => {
    await using directory = temporaryDirectory();
    const file = join(directory.path, 'file');
    writeFileSync(file, '');
    const environment = { ...noService, HOME: directory.path, XDG_STATE_HOME: '', [name]: file };
    const { code, err } = await runProcess(['serve'], environment, ownProgram, directory.path);
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(
        new RegExp(
          `^latchkey: The state directory .* cannot be used: .*; the path follows from ${name}: correct`,
          'm',
        ),
      ),
    ]);
  },
);

test('an error about an explicit state directory does not mention an environment variable', async () => {
  await using directory = temporaryDirectory();
  const file = join(directory.path, 'file');
  writeFileSync(file, '');
  const argv = ['serve', '--state-dir', join(file, 'state')];
  const { err } = await runProcess(argv, { ...noService, HOME: directory.path }, ownProgram, directory.path);
  expect(err).toMatch(/cannot be used: /);
  expect(err).not.toMatch(/follows from/);
});

test.each(['demo', 'sandbox'])('%s reports TMPDIR if its directory is missing', async (command) => {
  await using directory = temporaryDirectory();
  const missing = join(directory.path, 'missing');
  expect(await runProcess([command], { TMPDIR: missing })).toMatchObject({
    code: 1,
    err: `latchkey: cannot create a temporary directory in ${missing}: no such file or directory; set TMPDIR to a directory that this user can write to\n`,
  });
});

/** Runs a command under an unknown user id, without HOME. */
async function asUnknownUser(directory: string, ...argv: string[]): Promise<Outcome> {
  const [file, ...first] = ownProgram;
  const options = { uid: 54_321, gid: 54_321, cwd: directory, env: { PATH: process.env['PATH'] } };
  return await run(file, [...first, ...argv], options).then(
    ({ stdout, stderr }) => ({ code: 0, out: stdout, err: stderr }),
    (error: unknown) => {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
      return { code, out: stdout, err: stderr };
    },
  );
}

test.skipIf(process.getuid?.() !== 0)(
  'commands of a user without a home directory work, or report what is missing',
  async () => {
    await using directory = temporaryDirectory();
    chmodSync(directory.path, 0o777);
    const commands = [
      ['config', 'check'],
      ['doctor'],
      ['status'],
      ['init', '--authority'],
      ['service', 'print'],
      ['completion', 'next', '--', 'latchkey', 'backup', '~/'],
    ];
    for (const argv of commands) {
      const { err } = await asUnknownUser(directory.path, ...argv);
      expect([argv, err]).toEqual([argv, expect.not.stringMatching(/unexpected failure|uv_os_homedir/)]);
    }
    expect(await asUnknownUser(directory.path, 'service', 'print', '--user', '--json')).toEqual({
      code: 1,
      out: '',
      err: expect.stringContaining('this user has no home directory: set HOME') as string,
    });
    const usual = join(directory.path, 'latchkey.yaml');
    expect(
      await asUnknownUser(directory.path, 'init', '--authority', '--config', `${usual}.new`),
    ).toMatchObject({
      code: 0,
    });
  },
);

test.each(['', 'relative'])('a HOME of "%s", which is not an absolute path, is ignored', async (home) => {
  await using directory = temporaryDirectory();
  const unset = { XDG_CONFIG_HOME: '', XDG_STATE_HOME: '', XDG_RUNTIME_DIR: '', XDG_CACHE_HOME: '' };
  const launcher = fileURLToPath(new URL('../../src/cli/launcher.js', import.meta.url));
  const program = [process.execPath, launcher] as const;
  const checked = await runProcess(['config', 'check'], { HOME: home, ...unset }, program, directory.path);
  expect(checked).toMatchObject({ code: 0, err: '' });
  expect(readdirSync(directory.path)).toEqual([]);
});
