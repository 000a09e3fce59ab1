import { type Fault, formatFault } from '../config/fault.ts';
import type { LoadOptions } from '../config/load.ts';
import type { Tree } from '../config/tree.ts';
import type { GlobalOptions } from './command.ts';

/** Says where this command line's configuration comes from; further flags are laid over it. */
export function toLoadOptions({ config, stateDir }: GlobalOptions, flags: Tree = {}): LoadOptions {
  // The token is for the command line; to the configuration its name would be an unknown key.
  const { LATCHKEY_TOKEN: _token, ...environment } = process.env;
  return { file: config, flags: { ...flags, state_dir: stateDir }, environment };
}

/** Writes the faults of a configuration, a line each. */
export function formatFaults(faults: readonly Fault[]): string[] {
  return faults.map((fault) => `latchkey: configuration: ${formatFault(fault)}`);
}
