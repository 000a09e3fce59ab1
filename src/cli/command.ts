import type { ArgumentsCamelCase, InferredOptionTypes, Options } from 'yargs';
import { exitCode } from './exit-code.ts';
import type { Block, Cell } from './format.ts';
import type { Output, Refusal } from './output.ts';

export interface Term {
  readonly term: string;
  readonly meaning: string;
}

/** What the running daemon has by an id. */
export type ResourceName =
  | 'account'
  | 'act'
  | 'agent'
  | 'collection'
  | 'coupon'
  | 'operation'
  | 'product'
  | 'purchase'
  | 'token'
  | 'webhook';

/** What a value names. The shell completes files and folders; the program completes the others. */
export type ValueName = 'file' | 'folder' | 'command' | ResourceName;

/** An option or a positional, as yargs declares it. The other members are for completion and the reference. */
export interface Value extends Options {
  readonly describe: string;
  readonly names?: ValueName;
  /** Values that a shell completes where other values are accepted too. */
  readonly suggestions?: readonly Term[];
  readonly mayBeBlank?: true;
}

export type Builder = Readonly<Record<string, Value>>;

export interface GlobalOptions {
  readonly config?: string | undefined;
  readonly stateDir?: string | undefined;
  readonly json?: boolean | undefined;
  /** Prints a warning, each one once per command line. */
  readonly warn?: ((line: string) => void) | undefined;
}

export type Args<Declared> = ArgumentsCamelCase<InferredOptionTypes<Declared & Record<string, Options>>> &
  GlobalOptions;

/** A command module of yargs whose handler gets the output and returns the exit code. */
export interface Command {
  /** The name and the positionals: `retry <id>`. */
  readonly command: string;
  readonly describe: string;
  readonly builder: Builder;
  readonly examples: readonly (readonly [line: string, meaning: string])[];
  readonly epilogue?: string;
  readonly handler: (args: GlobalOptions, output: Output) => Promise<number>;
}

/** Commands under one word, which is `command`. */
export interface Group {
  readonly command: string;
  readonly describe: string;
  readonly commands: readonly (Command | Group)[];
}

/** A word after `latchkey`. Its file is loaded only when the command or the group is called or described. */
export interface Entry {
  readonly name: string;
  /** Of a group, which can be listed without its file. */
  readonly describe?: string;
  readonly load: () => Promise<Command | Group>;
}

/** Declares the commands under one word. */
export function commandGroup(
  name: string,
  describe: string,
  load: () => Promise<Pick<Group, 'commands'>>,
): Entry {
  return {
    name,
    describe,
    load: async () => ({ command: name, describe, commands: (await load()).commands }),
  };
}

/** What a feature shows of a license: members of the JSON, fields, and what follows the fields. */
export type LicensePart = {
  readonly json: object;
  readonly fields: Readonly<Record<string, Cell>>;
  readonly blocks: readonly Block[];
};

/** Reads it from the daemon. `seats`: of the product, if it is known. */
export type ReadLicensePart = (
  options: GlobalOptions,
  licenseKey: string,
  seats: number | null,
) => Promise<LicensePart>;

/** The sections of `latchkey --help`. */
export type HelpSection = 'Run' | 'Use license keys' | 'Sell' | 'Lease' | 'Look after';

/** Commands that belong together, on one line of `latchkey --help`. */
export interface HelpLine {
  readonly names: readonly string[];
  readonly describe: string;
}

/** `names`: separated by spaces. */
export function helpLine(names: string, describe: string): HelpLine {
  return { names: names.split(' '), describe };
}

export function nameOf({ command }: Command | Group): string {
  return command.split(' ', 1).join();
}

/** Declares a command. The handler knows the types of the values in the builder. */
export function defineCommand<const Declared extends Builder>(
  command: Omit<Command, 'builder' | 'handler'> & {
    readonly builder: Declared;
    readonly handler: (args: Args<Declared>, output: Output) => Promise<number>;
  },
): Command {
  return command as unknown as Command;
}

export function textOption<const Name extends ValueName>(describe: string, names?: Name) {
  return { type: 'string', describe, ...(names !== undefined && { names }) } as const;
}

export function positional<const Name extends ValueName>(describe: string, names?: Name) {
  return { ...textOption(describe, names), demandOption: true, group: positionalGroup } as const;
}

export const positionalGroup = 'Positionals:';

export const globalOptions = {
  config: textOption(
    'Configuration file; default: ./latchkey.yaml, then the user’s, then the system’s',
    'file',
  ),
  'state-dir': textOption('State directory; ./latchkey.yaml is not read then', 'folder'),
  json: { type: 'boolean', describe: 'Print the result as JSON' },
  help: { type: 'boolean', alias: 'h', describe: 'Show help' },
} as const satisfies Builder;

export const programOptions = {
  version: { type: 'boolean', alias: 'v', describe: 'Show the version' },
} as const satisfies Builder;

/** A command line that is not understood; `words`: the command whose help to read, if it is known. */
export class UsageError extends Error {
  readonly words: readonly string[] | undefined;

  constructor(message: string, words?: readonly string[]) {
    super(message);
    this.words = words;
  }
}

/** A command failed: the lines to print, and the exit code. `refusal`: the daemon's error. */
export class CommandError extends Error {
  readonly lines: readonly string[];
  readonly code: number;
  readonly refusal: Refusal | undefined;

  constructor(lines: readonly string[], code: number = exitCode.failed, refusal?: Refusal) {
    super(lines.join('\n'));
    this.lines = lines;
    this.code = code;
    this.refusal = refusal;
  }
}

/** Refuses the options that name a daemon, for a command that runs daemons of its own. */
export function refuseDaemonOptions({ config, stateDir }: GlobalOptions, advice: string): void {
  for (const [option, value] of Object.entries({ '--config': config, '--state-dir': stateDir }))
    if (value !== undefined) throw new UsageError(`${option} cannot be given here: ${advice}`);
}
