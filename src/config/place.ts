import { isAbsolute, join, relative, sep } from 'node:path';
import type { DialectName } from '../domain/dialect.ts';
import type { Environment } from './environment.ts';
import { type Tree, valueAt } from './file/tree.ts';

/** The parts of the machine that decide defaults. */
export interface Machine {
  readonly environment: Environment;
  /** The user's home directory. */
  readonly home: string;
  readonly platform: NodeJS.Platform;
  /** Whether a person reads what this process prints. */
  readonly isTerminal?: boolean;
}

/** The user's and the system's configuration file, looked for in this order when none is named. */
export function findConfigurationFiles(machine: Machine): readonly string[] {
  const user = join(directory(machine, 'XDG_CONFIG_HOME') ?? join(machine.home, '.config'), 'latchkey');
  return [join(user, 'config.yaml'), '/etc/latchkey/config.yaml'];
}

/** The defaults that depend on the machine or on other settings. */
export interface Places {
  readonly stateDir: string;
  readonly socket: string;
  readonly logFormat: 'json' | 'pretty';
  readonly unknown: 'problem' | 'reset';
}

/** Software that was written for this store understands no problem (src/http/README.md, When nothing is known). */
const dialectOfExistingSoftware: DialectName = 'payhip';

/**
 * Finds the defaults that depend on the machine, or on what is configured (src/config/README.md, state_dir, listen, log).
 *
 * State is in the service manager's directory, else in the user's; the socket in the runtime
 * directory of either, else beside the state, for which the configured directory counts. The log is
 * written for machines, but on a terminal for people.
 */
export function findPlaces(machine: Machine, configured: Tree): Places {
  const configuredStateDir = configured['state_dir'];
  const isConfigured = typeof configuredStateDir === 'string' && configuredStateDir !== '';
  const stateDir = isConfigured ? configuredStateDir : findStateDirectory(machine);
  const logFormat = machine.isTerminal === true ? 'pretty' : 'json';
  const dialect = valueAt(configured, ['listen', 'dialect']);
  const unknown = dialect === dialectOfExistingSoftware ? 'reset' : 'problem';
  return { stateDir, socket: findSocket(machine, stateDir), logFormat, unknown };
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

/** The environment variable that a default path follows from; null: the path is no default. */
export function variableBehind(path: string, machine: Machine): string | null {
  const { stateDir, socket } = findPlaces(machine, {});
  if (path !== stateDir && path !== socket) return null;
  const names = ['RUNTIME_DIRECTORY', 'XDG_RUNTIME_DIR', 'STATE_DIRECTORY', 'XDG_STATE_HOME'];
  const found = names.find((name) => isIn(path, directory(machine, name)));
  return found ?? 'HOME';
}

function isIn(path: string, folder: string | undefined): boolean {
  if (folder === undefined) return false;
  const way = relative(folder, path);
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** Reads a directory variable: systemd may list several (`:` between), and XDG says to ignore a relative one. */
function directory(machine: Machine, name: string): string | undefined {
  const text = machine.environment[name];
  const first = machine.platform === 'win32' ? text : text?.split(':')[0];
  return first !== undefined && isAbsolute(first) ? first : undefined;
}
