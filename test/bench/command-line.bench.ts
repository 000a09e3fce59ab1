import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { completeLine, linesOf } from '../support/every-command.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const rounds = 5;
/** Of a column, in characters. */
const width = 20;
const root = join(import.meta.dirname, '../..');

/** The program from source, as built for npm, and as one executable; those that are there. */
const programs: Readonly<Record<string, Argv>> = {
  source: [process.execPath, join(root, 'src/cli/launcher.js')],
  package: [process.execPath, join(root, 'dist/cli/launcher.js')],
  executable: [join(root, 'dist/executable/latchkey')],
};

/** They run until they are ended, play a whole story, or write where they stand. */
const others = new Set(['serve', 'sandbox', 'demo', 'init', 'service install', 'service uninstall']);

type Argv = readonly [string, ...string[]];

/** In milliseconds. */
function time([file, ...argv]: Argv, cwd: string): number {
  const before = performance.now();
  spawnSync(file, argv, { cwd, env: { ...process.env, HOME: cwd }, stdio: 'ignore' });
  return performance.now() - before;
}

/** How much longer than an empty Node, in ms: the median of some rounds, in each of which both run. */
function timeOver(argv: Argv, cwd: string): number {
  // The first run fills the cache of compiled code.
  time(argv, cwd);
  const over = Array.from({ length: rounds }, () => {
    const empty = time([process.execPath, '-e', '0'], cwd);
    return time(argv, cwd) - empty;
  });
  return over.toSorted((one, other) => one - other)[Math.floor(rounds / 2)] ?? Number.NaN;
}

test('each command where no daemon runs, beside an empty Node', { timeout: 1_200_000 }, async () => {
  await using folder = temporaryDirectory();
  const there = Object.entries(programs).filter(([, argv]) => existsSync(argv.at(-1) ?? ''));
  const lines = linesOf().filter((line) => !others.has(line));
  const table: string[] = [['', ...there.map(([name]) => name)].map((cell) => cell.padEnd(width)).join('')];
  for (const line of lines) {
    const argv = await completeLine(line, folder.path);
    const cells = there.map(([, program]) => {
      const over = timeOver([...program, '--state-dir', folder.path, ...argv], folder.path);
      return `+${over.toFixed(0)} ms`;
    });
    table.push([line, ...cells].map((cell) => cell.padEnd(width)).join(''));
  }
  process.stdout.write(`${table.join('\n')}\n`);
  expect(table).toHaveLength(1 + lines.length);
});
