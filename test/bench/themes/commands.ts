import { mkdtempSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { completeLine, everyLine } from '../../support/app/every-command.ts';
import type { Bench } from '../bench.ts';
import { alternate, difference } from '../figure.ts';
import type { Argv } from '../process.ts';
import { programs } from '../program.ts';
import { plainSource, type Theme } from '../theme.ts';

/** These commands do not end, play a whole demo, or write files. */
const others = new Set(['serve', 'sandbox', 'demo', 'init', 'service install', 'service uninstall']);

export const commandsTheme: Theme = {
  name: 'commands',
  about: 'how long each command takes without a daemon, beyond an empty Node',
  isExtra: true,
  async *measure(bench) {
    const folder = mkdtempSync(join(bench.directory, 'commands-'));
    const lines = (await everyLine()).filter((line) => !others.has(line));
    const chosen = bench.isQuick ? lines.slice(0, 2) : lines;
    for (const form of bench.shippedForms()) {
      for (const line of chosen) {
        const argv = await completeLine(line, folder);
        const program: Argv = [...programs[form], '--state-dir', folder, ...argv];
        const { command, node } = await alternate(bench.effort.rounds, {
          command: () => time(bench, program, folder),
          node: () => time(bench, [process.execPath, '-e', '0'], folder),
        });
        const what = `latchkey ${line}, ${form}, beyond an empty Node`;
        const from = { 'empty Node': plainSource(node, 'ms') };
        yield { what, unit: 'ms', figure: difference(command, node), goal: null, from, note: null };
      }
    }
  },
};

/** The time of a command in ms, whatever its exit code is. */
async function time(bench: Bench, [file, ...argv]: Argv, cwd: string): Promise<number> {
  const before = performance.now();
  spawnSync(file, argv, { cwd, env: bench.environment, stdio: 'ignore' });
  return await Promise.resolve(performance.now() - before);
}
