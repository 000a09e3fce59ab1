import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { openPseudoTerminal, type PseudoTerminal } from '../support/process/pseudo-terminal.ts';
import { eventually } from '../support/harness/agent-harness.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { prepareWine, windowsNode, WineMissing, type Wine } from './wine/chroot.ts';

/** The chroot; null where it cannot be had. */
function wineHere(): Wine | null {
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  try {
    return prepareWine(say);
  } catch (error) {
    if (!(error instanceof WineMissing)) throw error;
    say(`Windows is not tested: ${error.message}.`);
    return null;
  }
}

const wine = wineHere();
const root = join(import.meta.dirname, '../..');
const shared = temporaryDirectory();

describe.skipIf(wine === null)("Windows' Node under Wine", () => {
  beforeAll(() => {
    execFileSync('npm', ['run', 'build:executable', '--', '--platform', 'win32'], {
      cwd: root,
      stdio: 'inherit',
    });
    return () => shared[Symbol.asyncDispose]();
  });

  test('build:executable built latchkey.exe', () => {
    expect(existsSync(join(root, 'dist/executable/latchkey.exe'))).toBe(true);
  });

  test('the stories and the tests in process pass', async () => {
    const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'test/windows/vitest.config.ts'];
    const { code, output } = await run([...windowsNode, ...vitest]);
    expect(code, output).toBe(0);
  });

  test('Ctrl-C in a console ends a daemon in good order', async () => {
    const state = join(shared.path, 'state');
    const configuration = { state_dir: String.raw`Z:\shared\state`, listen: { tcp: '127.0.0.1:0' } };
    writeFileSync(join(shared.path, 'config.yaml'), JSON.stringify(configuration));
    const argv = ['src/cli/launcher.js', 'serve', '--config', String.raw`Z:\shared\config.yaml`];
    await using terminal = openTerminal([...windowsNode, ...argv]);
    await eventually(() => terminal.written().includes('ready'));
    expect(existsSync(join(state, 'listen.json'))).toBe(true);
    terminal.type('\x03');
    expect([await terminal.ended, terminal.written()]).toEqual([0, expect.stringContaining('stopped')]);
    expect(existsSync(join(state, 'listen.json'))).toBe(false);
  });
});

function enter(command: readonly string[]): readonly string[] {
  if (wine === null) throw new Error('no Wine');
  return [...wine.command({ shared: shared.path }), ...command];
}

/** Runs a program of the chroot. Its output goes to a file: a Windows program cannot write to a pipe of Linux. */
async function run(command: readonly string[]): Promise<{ code: number; output: string }> {
  const log = join(shared.path, 'output');
  const file = openSync(log, 'w');
  try {
    const [program = '', ...argv] = enter(command);
    const [code] = (await once(spawn(program, argv, { stdio: ['ignore', file, file] }), 'close')) as [number];
    return { code, output: readFileSync(log, 'utf8') };
  } finally {
    closeSync(file);
  }
}

function openTerminal(command: readonly string[]): PseudoTerminal {
  return openPseudoTerminal(enter(command), { columns: 100 });
}
