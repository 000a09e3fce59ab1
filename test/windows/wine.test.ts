import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/harness/agent-harness.ts';
import { buildProgramOnce, programFile } from '../support/process/built-program.ts';
import { buildExecutable } from '../support/process/executable.ts';
import { openPseudoTerminal } from '../support/process/pseudo-terminal.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { prepareWine, windowsNode, WineMissing, type Wine } from './wine/chroot.ts';

// The tests that Windows' Node runs are chosen in vitest.config.ts beside this file.

/** A run that hangs is ended after this time. On an idle machine all runs together take less than 6 minutes. */
const limitMs = 30 * 60_000;

const shared = temporaryDirectory();
/** TEMP of programs in a console. */
const temporary = join(shared.path, 'temporary');
mkdirSync(temporary);
afterAll(() => shared[Symbol.asyncDispose]());

const wine = await findWine();

/** The chroot; null where it cannot be had. */
async function findWine(): Promise<Wine | null> {
  try {
    return await prepareWine(say);
  } catch (error) {
    if (!(error instanceof WineMissing)) throw error;
    say(`Windows is not tested: ${error.message}.`);
    return null;
  }
}

const hasTool = spawnSync('osslsigncode', ['--version']).error === undefined;
if (wine !== null && !hasTool) {
  say('latchkey.exe is not tested: it is built with osslsigncode (apt-get install osslsigncode).');
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

describe.skipIf(wine === null)("Windows' Node under Wine", () => {
  test.skipIf(!hasTool)('the demo of latchkey.exe succeeds', { timeout: limitMs }, async () => {
    copyFileSync(buildExecutable('win32'), join(shared.path, 'latchkey.exe'));
    const { code, output } = await run(['wine64', '/shared/latchkey.exe', 'demo']);
    expect([code, output]).toEqual([0, expect.stringContaining('Every step succeeded.')]);
  });

  test.each(['stories', 'in process'])(
    'the tests of the project "%s" pass',
    { timeout: limitMs },
    async (project) => {
      cpSync(buildProgramOnce(), join(shared.path, 'program'), { recursive: true });
      const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'test/windows/vitest.config.ts'];
      const built = `BUILT_PROGRAM=Z:/shared/program/${programFile}`;
      const { code, output } = await run(['env', built, ...windowsNode, ...vitest, '--project', project]);
      expect(code, output).toBe(0);
    },
  );

  test('Ctrl-C in a console ends a daemon in good order', { timeout: limitMs }, async () => {
    const configuration = { state_dir: String.raw`Z:\shared\state`, listen: { tcp: '127.0.0.1:0' } };
    writeFileSync(join(shared.path, 'config.yaml'), JSON.stringify(configuration));
    const { code, written } = await interrupt(
      ['serve', '--config', String.raw`Z:\shared\config.yaml`],
      'ready',
    );
    expect([code, written]).toEqual([0, expect.stringContaining('stopped')]);
    expect(existsSync(join(shared.path, 'state/listen.json'))).toBe(false);
  });

  test('Ctrl-C in a console ends the demo, which removes its data', { timeout: limitMs }, async () => {
    const { code } = await interrupt(['demo'], '2. An agent runs');
    expect([code, readdirSync(temporary)]).toEqual([1, []]);
  });
});

function enter(command: readonly string[]): readonly string[] {
  if (wine === null) throw new Error('no Wine');
  return [...wine(shared.path), ...command];
}

/** Runs a program of the chroot. Its output goes to a file: a Windows program cannot write to a pipe of Linux. */
async function run(command: readonly string[]): Promise<{ code: number; output: string }> {
  const log = join(shared.path, 'output');
  const file = openSync(log, 'w');
  try {
    const [program = '', ...argv] = enter(command);
    const child = spawn(program, argv, {
      stdio: ['ignore', file, file],
      timeout: limitMs,
      killSignal: 'SIGKILL',
    });
    const [code] = (await once(child, 'close')) as [number];
    return { code, output: readFileSync(log, 'utf8') };
  } finally {
    closeSync(file);
  }
}

/** Wine takes TEMP from its registry alone. */
const withTemporary = String.raw`
  wine64 reg add 'HKCU\Environment' /v TEMP /d 'Z:\shared\temporary' /f >/dev/null
  exec "$@"`;

/** Runs Latchkey in a console, and types Ctrl-C when it has written a text. */
async function interrupt(argv: readonly string[], text: string): Promise<{ code: number; written: string }> {
  const command = enter(['sh', '-ec', withTemporary, 'sh', ...windowsNode, 'src/cli/launcher.js', ...argv]);
  await using terminal = openPseudoTerminal(command, { columns: 100 });
  let hasEnded = false;
  void terminal.ended.then(() => (hasEnded = true));
  await eventually(() => hasEnded || terminal.written().includes(text));
  terminal.type('\x03');
  return { code: await terminal.ended, written: terminal.written() };
}
