import { formatKey } from '../../config/fault.ts';
import { loadConfiguration } from '../../config/load.ts';
import { effective } from '../../config/show.ts';
import { leavesOf, type Tree } from '../../config/tree.ts';
import { type Command, defineCommand } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { formatFields } from '../format.ts';
import { reportFaults, toLoadOptions } from '../configuration.ts';

/** `config check`: works without a daemon. */
export const checkConfig: Command = defineCommand(
  (yargs) => yargs,
  async (args, output) => {
    const loaded = loadConfiguration(toLoadOptions(args));
    if (args.json) {
      output.printJson(loaded.ok ? { ok: true, file: loaded.file, role: loaded.configuration.role } : loaded);
    } else if (loaded.ok) {
      output.print(`ok: ${loaded.file ?? 'no file, defaults'} (${loaded.configuration.role})`);
    }
    return loaded.ok ? exitCode.done : reportFaults(loaded.faults, output);
  },
);

/** `config show`: works without a daemon. */
export const showConfig: Command = defineCommand(
  (yargs) => yargs,
  async (args, output) => {
    const loaded = loadConfiguration(toLoadOptions(args));
    if (!loaded.ok) return reportFaults(loaded.faults, output);
    const tree = effective(loaded.configuration);
    if (args.json) output.printJson(tree);
    else output.print(formatFields(byKey(tree)));
    return exitCode.done;
  },
);

/** Each value by its full path, as faults name it. */
function byKey(tree: Tree): Readonly<Record<string, string>> {
  return Object.fromEntries(leavesOf(tree).map(([path, value]) => [formatKey(path), String(value)]));
}
