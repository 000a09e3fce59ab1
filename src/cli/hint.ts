import { isAbsolute, parse, relative } from 'node:path';
import type { GlobalOptions } from './command.ts';

/** Writes the command line of a command, given by its words. */
export type Hint = (words: string) => string;

/** Repeats the options that were given, so that what is advised is done for the same daemon. */
export function hintFor({ config, stateDir }: GlobalOptions): Hint {
  const given = [...option('--config', config), ...option('--state-dir', stateDir)];
  return (words) => [programName(), ...given, words].join(' ');
}

/** What people type before the words of a command: in a clone, where nothing is installed, its npm script. */
export function programName(): string {
  return process.env['npm_lifecycle_event'] === 'latchkey' ? 'npm run latchkey --' : 'latchkey';
}

/** Quotes a word where a shell would not take it as it stands. */
export function quoteForShell(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/**
 * Writes a path as people would type it here: beginning with `./` where it is in the working directory. Everything is
 * in the root directory, so nothing is written so from there.
 */
export function formatPath(path: string): string {
  const here = process.cwd();
  const near = relative(here, path);
  const isNear = near !== '' && !near.startsWith('..') && !isAbsolute(near);
  return isNear && here !== parse(here).root ? `./${near}` : path;
}

function option(name: string, value: string | undefined): readonly string[] {
  return value === undefined ? [] : [name, quoteForShell(value)];
}
