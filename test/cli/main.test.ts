import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { runProcess } from '../support/process/command-line.ts';
import { license, startFakeDaemon } from '../support/process/fake-daemon.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { patienceMs } from '../support/patience.ts';

test('latchkey --version prints the version of the package', async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(await runProcess(['--version'])).toEqual({ code: 0, out: `${version}\n`, err: '' });
});

test('verify sends the token of its environment over the socket', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: license } });
  const argv = ['verify', 'K', '--json', '--state-dir', daemon.stateDir];
  const { code, out, err } = await runProcess(argv, { LATCHKEY_TOKEN: 'lk_other' });
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(JSON.parse(out)).toEqual(license);
  expect(daemon.received).toMatchObject([
    { listener: 'socket', headers: { authorization: 'Bearer lk_other' } },
  ]);
});

test.each([
  [2, ['verfy']],
  [69, ['status', '--check']],
  [69, ['verify', 'K']],
  [78, ['serve', '--log-level', 'loud']],
] as const)(
  'a failed command exits with %i, and prints an error without a stack trace',
  async (code, argv) => {
    await using directory = temporaryDirectory();
    const listen = { LATCHKEY_LISTEN__TCP: 'false', LATCHKEY_LISTEN__SOCKET: `${directory.path}/l.sock` };
    const outcome = await runProcess([...argv, '--state-dir', directory.path], listen);
    expect(outcome).toMatchObject({ code, out: '' });
    expect(outcome.err).toMatch(/^latchkey: /);
    expect(outcome.err).not.toMatch(/^\s+at |node:/m);
  },
);

test('a command does not fail when the reader of its pipe stops reading', async () => {
  const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
  const command = `"${process.execPath}" "${main}" config show --json | head -c 1`;
  const { stdout, stderr } = await promisify(execFile)('sh', ['-c', command], { timeout: patienceMs });
  expect({ stdout, stderr }).toEqual({ stdout: '{', stderr: '' });
});

test.skipIf(process.platform !== 'linux')('a command fails if its result cannot be written', async () => {
  const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
  const run = (options: string): Promise<unknown> => {
    const command = `"${process.execPath}" "${main}" config show ${options} > /dev/full`;
    return promisify(execFile)('sh', ['-c', command], { timeout: patienceMs });
  };
  const reason = 'cannot write the result: ENOSPC: no space left on device';
  await expect(run('')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(new RegExp(`^latchkey: ${reason}.*\\n$`)),
  });
  const { stderr } = (await run('--json').catch((error: unknown) => error)) as { stderr: string };
  expect(JSON.parse(stderr)).toMatchObject({
    error: { code: 'failed', detail: expect.stringContaining(reason), exit_code: 1 },
  });
});

test('a service without a home keeps compiled code in its cache directory', async () => {
  await using directory = temporaryDirectory();
  const [home, cache] = [join(directory.path, 'home'), join(directory.path, 'cache')];
  const launcher = fileURLToPath(new URL('../../src/cli/launcher.js', import.meta.url));
  const run = (environment: Record<string, string>): Promise<{ code: number }> =>
    runProcess(['--version'], { HOME: home, XDG_CACHE_HOME: '', NODE_COMPILE_CACHE: '', ...environment }, [
      process.execPath,
      launcher,
    ]);
  expect(await run({ CACHE_DIRECTORY: cache })).toMatchObject({ code: 0 });
  expect([readdirSync(cache).length, existsSync(home)]).toEqual([1, false]);
  expect(await run({ CACHE_DIRECTORY: '' })).toMatchObject({ code: 0 });
  expect(readdirSync(join(home, '.cache/latchkey'))).toHaveLength(1);
});

test('a command in a removed working directory fails with one line', async () => {
  await using directory = temporaryDirectory();
  const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
  const command = `cd "${directory.path}" && rmdir "${directory.path}" && "${process.execPath}" "${main}" status`;
  await expect(promisify(execFile)('sh', ['-c', command], { timeout: patienceMs })).rejects.toMatchObject({
    code: 1,
    stderr: 'latchkey: the working directory was removed: change to another directory\n',
  });
});
