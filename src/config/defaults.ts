import { hash } from 'node:crypto';
import { homedir } from 'node:os';
import { isAbsolute, posix, win32 } from 'node:path';
import type { DialectName } from '../domain/header-names.ts';
import { type Tree, valueAt } from './file/tree.ts';
import { foreignStores, isForeignStore } from './foreign-stores.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The parts of the machine that decide defaults. */
export interface Machine {
  readonly environment: Environment;
  readonly home: string;
  readonly platform: NodeJS.Platform;
  readonly isTerminal?: boolean;
}

/** The rules for paths on a platform. Tests pass platforms other than their own. */
export function pathsOf(platform: NodeJS.Platform): typeof posix {
  return platform === 'win32' ? win32 : posix;
}

/** The configuration files of the user and of the system: searched in this order if no file is named. */
export function findConfigurationFiles(machine: Machine): readonly [user: string, system: string] {
  const { join } = pathsOf(machine.platform);
  const name = 'config.yaml';
  if (hasDesktopFolders(machine))
    return [join(userFolder(machine), name), join(systemStateDir(machine), name)];
  const user = directory(machine, 'XDG_CONFIG_HOME') ?? join(machine.home, '.config');
  return [join(user, 'latchkey', name), '/etc/latchkey/config.yaml'];
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
  const store = valueAt(configured, ['upstream', 'store']) ?? null;
  const foreign = isForeignStore(store) ? foreignStores[store] : null;
  const resets = dialect === dialectOfExistingSoftware || store !== null;
  return {
    state_dir: findStateDirectory(machine),
    ...(foreign && { upstream: { base_url: foreign.baseUrl }, sync: { rate: foreign.rate } }),
    listen: {
      socket: findSocket(machine, stateDirOf(machine, configured)),
      unknown: resets ? 'reset' : 'problem',
    },
    log: { format: machine.isTerminal === true ? 'pretty' : 'json' },
  };
}

/** The state directory that is configured, or the default one. */
export function stateDirOf(machine: Machine, { state_dir: configured }: Tree): string {
  return typeof configured === 'string' && configured !== '' ? configured : findStateDirectory(machine);
}

/** The state directory of a service of the whole machine. */
export function systemStateDir(machine: Machine): string {
  if (machine.platform === 'darwin') return '/Library/Application Support/Latchkey';
  if (machine.platform !== 'win32') return '/var/lib/latchkey';
  return win32.join(directory(machine, 'ProgramData') ?? String.raw`C:\ProgramData`, 'Latchkey');
}

function findStateDirectory(machine: Machine): string {
  const service = directory(machine, 'STATE_DIRECTORY');
  if (service !== undefined) return service;
  if (hasDesktopFolders(machine)) return userFolder(machine);
  const user = directory(machine, 'XDG_STATE_HOME') ?? posix.join(machine.home, '.local', 'state');
  return posix.join(user, 'latchkey');
}

/** Windows and macOS have one folder for state and configuration. Programs that start there see no XDG variables. */
function hasDesktopFolders({ platform }: Machine): boolean {
  return platform === 'win32' || platform === 'darwin';
}

function userFolder(machine: Machine): string {
  if (machine.platform === 'darwin')
    return posix.join(machine.home, 'Library', 'Application Support', 'Latchkey');
  const local = directory(machine, 'LOCALAPPDATA') ?? win32.join(machine.home, 'AppData', 'Local');
  return win32.join(local, 'Latchkey');
}

/** The default socket of a state directory. */
export function findSocket(machine: Machine, stateDir: string): string {
  if (machine.platform === 'win32') return pipeOf(stateDir);
  const service = directory(machine, 'RUNTIME_DIRECTORY');
  if (service !== undefined) return posix.join(service, 'latchkey.sock');
  const user = hasDesktopFolders(machine) ? undefined : directory(machine, 'XDG_RUNTIME_DIR');
  return posix.join(user === undefined ? stateDir : posix.join(user, 'latchkey'), 'latchkey.sock');
}

/**
 * The named pipe of a state directory. All users of a machine share the names of pipes, so the name contains a hash of
 * the path, which Windows compares without case. `client/address.ts` has the same rule.
 */
export function pipeOf(stateDir: string): string {
  const path = win32.resolve(stateDir.replace(/^\\\\\?\\/, '')).toLowerCase();
  return String.raw`\\.\pipe\latchkey-${hash('sha256', path).slice(0, 32)}`;
}

/** The environment variable that determines a default path; null if the path is not a default. */
export function variableBehind(path: string, machine: Machine): string | null {
  const stateDir = findStateDirectory(machine);
  if (path !== stateDir && path !== findSocket(machine, stateDir)) return null;
  const isWindows = machine.platform === 'win32';
  const names = isWindows
    ? ['STATE_DIRECTORY', 'LOCALAPPDATA']
    : ['RUNTIME_DIRECTORY', 'XDG_RUNTIME_DIR', 'STATE_DIRECTORY', 'XDG_STATE_HOME'];
  const base = isWindows ? stateDir : path;
  const found = names.find((name) => {
    const folder = directory(machine, name);
    return folder !== undefined && isInFolder(base, folder, machine.platform);
  });
  return found ?? (isWindows ? 'USERPROFILE' : 'HOME');
}

/** Whether a path is a folder or inside the folder. */
export function isInFolder(path: string, folder: string, platform: NodeJS.Platform): boolean {
  const { relative, isAbsolute: isElsewhere, sep } = pathsOf(platform);
  const way = relative(folder, path);
  return way !== '..' && !way.startsWith(`..${sep}`) && !isElsewhere(way);
}

/** Reads a variable with a directory: systemd may list several (separated by `:`), and XDG ignores relative paths. */
function directory({ environment, platform }: Machine, name: string): string | undefined {
  const text = platform === 'win32' ? variableOf(environment, name) : environment[name]?.split(':')[0];
  return text !== undefined && pathsOf(platform).isAbsolute(text) ? text : undefined;
}

/** Windows compares the names of variables without case. */
function variableOf(environment: Environment, name: string): string | undefined {
  const entries = Object.entries(environment);
  return entries.find(([each]) => each.toLowerCase() === name.toLowerCase())?.[1];
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
