import type { CommandArea, CommandLine, Entry } from './cli/command.ts';

/**
 * What one folder of `features/` adds to the core. A feature is listed in `features.ts`; without its folder and its
 * line there, the rest of Latchkey works the same. What is here is loaded at every start, and loads the rest when it is
 * used.
 */
export type Feature = {
  /** The name of the folder. */
  readonly name: string;
  /** Other features that its files import: it cannot be kept without them. */
  readonly needs?: readonly string[];
  /** Words after `latchkey`. */
  readonly commands?: readonly Entry[];
  /** Its lines in `latchkey --help`, which follow those of the core. */
  readonly help?: Partial<Readonly<Record<CommandArea, readonly CommandLine[]>>>;
  /** The command that starts the daemon of a state directory; null if `latchkey serve` does. */
  readonly startCommand?: (stateDir: string) => Promise<string | null>;
};
