import { pathsOf } from '../config/defaults.ts';
import type { Hint } from '../domain/finding.ts';
import { features } from '../features.ts';
import type { GlobalOptions } from './command.ts';

/** Repeats `--config` and `--state-dir`, so that the suggested command reaches the same daemon. */
export function hintFor({ config, stateDir }: GlobalOptions): Hint {
  const options = [...option('--config', config), ...option('--state-dir', stateDir)];
  return (words) => [programName(), ...options, words].join(' ');
}

/** What people type to call the program: in a clone, where it is not installed, its npm script. */
export function programName(): string {
  return process.env['npm_lifecycle_event'] === 'latchkey' ? 'npm run latchkey --' : 'latchkey';
}

/**
 * The command that starts the daemon of a state directory: that of the system if a service on this machine is for that
 * directory. `serve` would be refused there because the state belongs to the user of the service.
 */
export async function startCommand(options: GlobalOptions, stateDir: string): Promise<string> {
  for (const { startCommand: ofService } of features) {
    const command = await ofService?.(stateDir);
    if (command !== undefined && command !== null) return command;
  }
  return hintFor(options)('serve');
}

/** Quotes a word for the shells of a platform: on Windows for cmd.exe and PowerShell alike. */
export function quoteForShell(word: string, platform: NodeJS.Platform = process.platform): string {
  if (platform !== 'win32') {
    return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
  }
  if (/^[\w./:\\-]+$/.test(word)) return word;
  // Only PowerShell expands these within double quotes. In cmd.exe nothing but double quotes is a quote.
  if (/[$`]/.test(word)) return `'${word.replaceAll("'", "''")}'`;
  // The program would read a backslash before a quote as part of the word.
  return `"${word.replace(/(?<!\\)\\+$/, '$&$&')}"`;
}

/** Writes a path as people type it here: with `./` if it is in the working directory, unless that is the root. */
export function formatPath(
  path: string,
  platform: NodeJS.Platform = process.platform,
  here = process.cwd(),
): string {
  const { isAbsolute, parse, relative, sep } = pathsOf(platform);
  const near = relative(here, path);
  const isNear = near !== '' && !near.startsWith('..') && !isAbsolute(near);
  return isNear && here !== parse(here).root ? `.${sep}${near}` : path;
}

function option(name: string, value: string | undefined): readonly string[] {
  return value === undefined ? [] : [name, quoteForShell(value)];
}
