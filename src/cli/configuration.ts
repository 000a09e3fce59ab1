import { type Fault, formatFault } from '../config/fault/fault.ts';
import type { Tree } from '../config/file/tree.ts';
import type { LoadOptions } from '../config/load.ts';
import type { GlobalOptions } from './command.ts';
import { exitCode } from './exit-code.ts';
import { formatPath, quoteForShell } from './hint.ts';
import type { Output } from './output.ts';

/** The sources of the configuration. `flags` are options of the command, which override the other sources. */
export function toLoadOptions({ config, stateDir, warn }: GlobalOptions, flags: Tree = {}): LoadOptions {
  return {
    file: config,
    flags: { ...flags, state_dir: stateDir },
    environment: process.env,
    onPassedOver: (path, reason) => {
      const advice = `if you trust it: --config ${quoteForShell(formatPath(path))}`;
      warn?.(`latchkey: ${formatPath(path)} is skipped: ${reason}; ${advice}`);
    },
  };
}

/** Prints the errors of a configuration and returns the exit code. */
export function printFaults(faults: readonly Fault[], output: Output): number {
  output.printError(formatFaults(faults));
  return exitCode.configuration;
}

/** Writes the errors of a configuration, one on each line. */
export function formatFaults(faults: readonly Fault[]): string[] {
  return faults.map((fault) => `latchkey: configuration: ${formatFault(fault)}`);
}

/** Names the configuration file that was read, or the paths where none was found. */
export function formatSource({ file, places }: { file: string | null; places: readonly string[] }): string {
  if (file !== null) return formatPath(file);
  return places.length === 0 ? 'no file' : `no file, looked for at ${places.map(formatPath).join(', ')}`;
}
