import { type ConfigError, formatConfigError } from '../config/errors.ts';
import type { Tree } from '../config/file/tree.ts';
import type { LoadOptions } from '../config/load.ts';
import { CommandError, type GlobalOptions } from './command.ts';
import { exitCode } from './exit-code.ts';
import { formatPath, quoteForShell } from './hint.ts';

/** The sources of the configuration. `flags` are options of the command, which override the other sources. */
export function toLoadOptions({ config, stateDir, warn }: GlobalOptions, flags: Tree = {}): LoadOptions {
  return {
    file: config,
    flags: { ...flags, state_dir: stateDir },
    environment: process.env,
    onSkippedFile: (path, reason) => {
      const advice = `if you trust it: --config ${quoteForShell(formatPath(path))}`;
      warn?.(`latchkey: ${formatPath(path)} is skipped: ${reason}; ${advice}`);
    },
    onUncheckedFile: (path, reason) =>
      warn?.(`latchkey: ${formatPath(path)} is used, but not checked for who can write to it: ${reason}`),
  };
}

export function configurationError(errors: readonly ConfigError[]): CommandError {
  return new CommandError(formatConfigErrors(errors), exitCode.configuration);
}

export function formatConfigErrors(errors: readonly ConfigError[]): string[] {
  return errors.map((error) => `latchkey: configuration: ${formatConfigError(error)}`);
}

/** Names the configuration file that was read, or the paths where none was found. */
export function formatSource({
  file,
  searchedPaths,
}: {
  file: string | null;
  searchedPaths: readonly string[];
}): string {
  if (file !== null) return formatPath(file);
  return searchedPaths.length === 0
    ? 'no file'
    : `no file, looked for at ${searchedPaths.map((path) => formatPath(path)).join(', ')}`;
}
