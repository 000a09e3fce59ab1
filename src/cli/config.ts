import { formatKey, type KeyPath } from '../config/fault.ts';
import { loadConfiguration } from '../config/load.ts';
import { effective } from '../config/show.ts';
import { type CommandEntry, defineCommand, entry } from './command.ts';
import { exitCode } from './exit-code.ts';
import { type Cell, formatFields } from './layout.ts';
import { formatFaults, toLoadOptions } from './settings.ts';

const check = defineCommand(
  (yargs) => yargs,
  async (args, output) => {
    const loaded = loadConfiguration(toLoadOptions(args));
    if (args.json) {
      output.printJson(loaded.ok ? { ok: true, file: loaded.file, role: loaded.configuration.role } : loaded);
    } else if (loaded.ok) {
      output.print(`ok: ${loaded.file ?? 'no file, defaults'} (${loaded.configuration.role})`);
    }
    if (loaded.ok) return exitCode.done;
    output.complain(formatFaults(loaded.faults));
    return exitCode.configuration;
  },
);

const show = defineCommand(
  (yargs) => yargs,
  async (args, output) => {
    const loaded = loadConfiguration(toLoadOptions(args));
    if (!loaded.ok) {
      output.complain(formatFaults(loaded.faults));
      return exitCode.configuration;
    }
    const tree = effective(loaded.configuration);
    if (args.json) output.printJson(tree);
    else output.print(formatFields(Object.fromEntries(flatten(tree, []))));
    return exitCode.done;
  },
);

/** `config …`: works without a daemon. */
export const configCommands: readonly CommandEntry[] = [
  entry('check', 'Say what is wrong with the configuration, a line for each fault', check),
  entry('show', 'Show the effective values, secrets masked', show),
];

/** Writes each value by its whole path, as faults name it. */
function flatten(value: unknown, path: KeyPath): readonly (readonly [string, Cell])[] {
  if (typeof value !== 'object' || value === null) return [[formatKey(path), String(value)]];
  if (Array.isArray(value) && value.length === 0) return [[formatKey(path), '[]']];
  return Object.entries(value).flatMap(([key, item]) =>
    flatten(item, [...path, Array.isArray(value) ? Number(key) : key]),
  );
}
