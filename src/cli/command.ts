import type { ArgumentsCamelCase, Argv } from 'yargs';
import type { Output } from './output.ts';

/** What every command takes. */
export interface GlobalOptions {
  readonly config?: string | undefined;
  readonly stateDir?: string | undefined;
  readonly json?: boolean | undefined;
  /** Says something beside the result, each line once. */
  readonly note?: ((line: string) => void) | undefined;
}

/** A command: `build` declares its own arguments, `run` does it and gives the exit code. */
export interface Command {
  readonly build: (yargs: Argv<GlobalOptions>) => Argv<GlobalOptions>;
  readonly run: (args: ArgumentsCamelCase<GlobalOptions>, output: Output) => Promise<number>;
}

/** A command by the name it is called with, loaded only when it is called; or a group of commands. */
export type CommandEntry =
  | { readonly usage: string; readonly summary: string; readonly load: () => Promise<Command> }
  | { readonly usage: string; readonly summary: string; readonly members: readonly CommandEntry[] };

/** A command line that cannot be understood. */
export class UsageError extends Error {}

/** Makes a command whose `run` knows the types of the arguments that `build` declares. */
export function defineCommand<Options extends GlobalOptions>(
  build: (yargs: Argv<GlobalOptions>) => Argv<Options>,
  run: (args: ArgumentsCamelCase<Options>, output: Output) => Promise<number>,
): Command {
  // yargs hands `run` exactly what `build` declared, which the list of all commands cannot express.
  return { build, run } as unknown as Command;
}

/** The word that a command is called by. */
export function nameOf({ usage }: CommandEntry): string {
  return usage.split(' ', 1)[0] ?? usage;
}

/** Declares an option that takes a text. */
export function textOption(describe: string): { type: 'string'; requiresArg: true; describe: string } {
  return { type: 'string', requiresArg: true, describe };
}

/** Declares a positional argument. */
export function operand(describe: string): { type: 'string'; demandOption: true; describe: string } {
  return { type: 'string', demandOption: true, describe };
}

/** Makes the entry of a command. */
export function command(usage: string, summary: string, load: () => Promise<Command>): CommandEntry {
  return { usage, summary, load };
}

/** Makes the entry of a group of commands. */
export function group(usage: string, summary: string, members: readonly CommandEntry[]): CommandEntry {
  return { usage, summary, members };
}
