import { type Fault, formatFault } from '../config/fault/fault.ts';
import type { LoadOptions } from '../config/load.ts';
import type { Tree } from '../config/file/tree.ts';
import { noteKey, type GlobalOptions } from './command.ts';
import { exitCode } from './exit-code.ts';
import { formatPath, quoteForShell } from './hint.ts';
import type { Output } from './output.ts';

/** The sources of this command line's configuration; `flags` are the command's own and win over the rest. */
export function toLoadOptions(
  { config, stateDir, [noteKey]: note }: GlobalOptions,
  flags: Tree = {},
): LoadOptions {
  return {
    file: config,
    flags: { ...flags, state_dir: stateDir },
    environment: process.env,
    onPassedOver: (path, reason) => {
      const advice = `if you trust it: --config ${quoteForShell(formatPath(path))}`;
      note?.(`latchkey: ${formatPath(path)} is skipped: ${reason}; ${advice}`);
    },
  };
}

/** Prints the faults of a configuration and gives the exit code for them. */
export function reportFaults(faults: readonly Fault[], output: Output): number {
  output.complain(formatFaults(faults));
  return exitCode.configuration;
}

/** Writes the faults of a configuration, one a line. */
export function formatFaults(faults: readonly Fault[]): string[] {
  return faults.map((fault) => `latchkey: configuration: ${formatFault(fault)}`);
}

/** Names the configuration file that was read, or says where none was found. */
export function formatSource({ file, places }: { file: string | null; places: readonly string[] }): string {
  if (file !== null) return formatPath(file);
  return places.length === 0 ? 'no file' : `no file, looked for at ${places.map(formatPath).join(', ')}`;
}
