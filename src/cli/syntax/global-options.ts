import type { Value } from './declaration.ts';

/** What every command takes, by its name. */
export const globalOptions: ReadonlyMap<string, Value> = new Map<string, Value>([
  [
    'config',
    {
      describe: 'Configuration file; default: ./latchkey.yaml, then the user’s, then the system’s',
      names: 'file',
    },
  ],
  ['state-dir', { describe: 'State directory; ./latchkey.yaml is not read then', names: 'folder' }],
  ['json', { type: 'boolean', describe: 'Print the answer as JSON' }],
  ['help', { type: 'boolean', describe: 'Show help' }],
]);

/** What the program alone takes, without a command. */
export const programOptions: ReadonlyMap<string, Value> = new Map<string, Value>([
  ['version', { type: 'boolean', describe: 'Show the version' }],
]);

/** The one letter by which an option may be given. */
export const letters: Readonly<Record<string, string>> = { help: 'h', version: 'v' };
