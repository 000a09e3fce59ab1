import { isAbsolute, join, relative, sep } from 'node:path';
import { homedir } from 'node:os';
import type { DialectName } from '../domain/header-names.ts';
import { type Tree, valueAt } from './file/tree.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The parts of the machine that decide defaults. */
export interface Machine {
  readonly environment: Environment;
  readonly home: string;
  readonly platform: NodeJS.Platform;
  readonly isTerminal?: boolean;
}

/** The configuration files of the user and of the system: searched in this order if no file is named. */
export function findConfigurationFiles(machine: Machine): readonly string[] {
  const user = join(directory(machine, 'XDG_CONFIG_HOME') ?? join(machine.home, '.config'), 'latchkey');
  return [join(user, 'config.yaml'), '/etc/latchkey/config.yaml'];
}

/** Software that was written for this store does not understand problems (src/http/README.md, When nothing is known). */
const dialectOfExistingSoftware: DialectName = 'payhip';

/**
 * The defaults that depend on the machine or on other settings, in the form of the file
 * (src/config/README.md, state_dir, listen, log).
 *
 * The state is in the directory of the service manager, or else of the user. The socket is in the runtime
 * directory of either, or else in the state directory. The log is for machines, but on a terminal for people.
 */
export function defaultsOf(machine: Machine, configured: Tree): Tree {
  const dialect = valueAt(configured, ['listen', 'dialect']);
  return {
    state_dir: findStateDirectory(machine),
    listen: {
      socket: findSocket(machine, stateDirOf(machine, configured)),
      unknown: dialect === dialectOfExistingSoftware ? 'reset' : 'problem',
    },
    log: { format: machine.isTerminal === true ? 'pretty' : 'json' },
  };
}

/** The state directory that is configured, or the default one. */
export function stateDirOf(machine: Machine, { state_dir: configured }: Tree): string {
  return typeof configured === 'string' && configured !== '' ? configured : findStateDirectory(machine);
}

function findStateDirectory(machine: Machine): string {
  const service = directory(machine, 'STATE_DIRECTORY');
  const user = directory(machine, 'XDG_STATE_HOME') ?? join(machine.home, '.local', 'state');
  return service ?? join(user, 'latchkey');
}

function findSocket(machine: Machine, stateDir: string): string {
  if (machine.platform === 'win32') return String.raw`\\.\pipe\latchkey`;
  const service = directory(machine, 'RUNTIME_DIRECTORY');
  if (service !== undefined) return join(service, 'latchkey.sock');
  const user = directory(machine, 'XDG_RUNTIME_DIR');
  return join(user === undefined ? stateDir : join(user, 'latchkey'), 'latchkey.sock');
}

/** The environment variable that determines a default path; null if the path is not a default. */
export function variableBehind(path: string, machine: Machine): string | null {
  const stateDir = findStateDirectory(machine);
  if (path !== stateDir && path !== findSocket(machine, stateDir)) return null;
  const names = ['RUNTIME_DIRECTORY', 'XDG_RUNTIME_DIR', 'STATE_DIRECTORY', 'XDG_STATE_HOME'];
  const found = names.find((name) => isIn(path, directory(machine, name)));
  return found ?? 'HOME';
}

function isIn(path: string, folder: string | undefined): boolean {
  if (folder === undefined) return false;
  const way = relative(folder, path);
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** Reads a variable with a directory: systemd may list several (separated by `:`), and XDG ignores relative paths. */
function directory(machine: Machine, name: string): string | undefined {
  const text = machine.environment[name];
  const first = machine.platform === 'win32' ? text : text?.split(':')[0];
  return first !== undefined && isAbsolute(first) ? first : undefined;
}

/** This user's home directory; null where neither HOME nor the system names one, as for some users in containers. */
export function homeDirectory(): string | null {
  try {
    const home = homedir();
    return isAbsolute(home) ? home : null;
  } catch {
    return null;
  }
}
