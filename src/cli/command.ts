import type { Output } from './output.ts';
import { type Declaration, type Named, newSyntax, type Syntax } from './syntax/declaration.ts';

/** A symbol, since no option or operand of a command can have this name. */
export const noteKey: unique symbol = Symbol('note');

/** What every command takes. */
export interface GlobalOptions {
  readonly config?: string | undefined;
  readonly stateDir?: string | undefined;
  readonly json?: boolean | undefined;
  /** Says something beside the result, each line once. */
  readonly [noteKey]?: ((line: string) => void) | undefined;
}

/** A command: what it takes, and `run`, which does it and gives the exit code. */
export interface Command {
  readonly declaration: Declaration;
  readonly run: (args: GlobalOptions, output: Output) => Promise<number>;
}

/** A command by the name it is called with, loaded only when it is called; or a group of commands. */
export type CommandEntry =
  | { readonly usage: string; readonly summary: string; readonly load: () => Promise<Command> }
  | { readonly usage: string; readonly summary: string; readonly members: readonly CommandEntry[] };

/** A command line that cannot be understood; `words`: the command whose help is to be seen, where it is known. */
export class UsageError extends Error {
  readonly words: readonly string[] | undefined;

  constructor(message: string, words?: readonly string[]) {
    super(message);
    this.words = words;
  }
}

/** Makes a command whose `run` knows the types of what `declare` declares. */
export function defineCommand<Options extends GlobalOptions>(
  declare: (syntax: Syntax<GlobalOptions>) => Syntax<Options>,
  run: (args: Options, output: Output) => Promise<number>,
): Command {
  const { declaration } = declare(newSyntax());
  // `run` is given exactly what was declared, which the list of all commands cannot express.
  return { declaration, run: run as Command['run'] };
}

/** The word that a command is called by. */
export function nameOf({ usage }: CommandEntry): string {
  return usage.split(' ', 1)[0] ?? usage;
}

/** Declares an option that takes a text. */
export function textOption(describe: string, names?: Named): { describe: string; names?: Named } {
  return names === undefined ? { describe } : { describe, names };
}

/** Declares an operand that must be given. */
export function operand(
  describe: string,
  names?: Named,
): { describe: string; required: true; names?: Named } {
  return { ...textOption(describe, names), required: true };
}

/** Makes the entry of a command. */
export function command(usage: string, summary: string, load: () => Promise<Command>): CommandEntry {
  return { usage, summary, load };
}

/** Makes the entry of a group of commands. */
export function group(usage: string, summary: string, members: readonly CommandEntry[]): CommandEntry {
  return { usage, summary, members };
}
