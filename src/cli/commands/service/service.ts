import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { isSea } from 'node:sea';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { EnvironmentError, formatConfigError, formatReason } from '../../../config/errors.ts';
import { homeDirectory } from '../../../config/defaults.ts';
import { findLocalFile, locateDaemon, type LocationResult } from '../../../config/load.ts';
import { type Args, CommandError, textOption } from '../../command.ts';
import { toLoadOptions } from '../../configuration.ts';
import {
  defaultStateDir,
  runtimeDirectory,
  unitFolder,
  type UnitOptions,
  type UnitScope,
} from './systemd-unit.ts';

export const serviceOptions = {
  user: { type: 'boolean', default: false, describe: 'A service of this user instead of the system' },
  root: textOption('Root directory of another system, such as an image', 'folder'),
  program: textOption('Program that the service starts; default: this one', 'file'),
} as const;

export type ServiceArgs = Args<typeof serviceOptions>;

/** systemd starts the program in another directory, so the configuration file of this directory has to be named. */
export function withLocalFile(args: ServiceArgs): ServiceArgs {
  if (args.config !== undefined || args.root !== undefined) return args;
  return { ...args, config: findLocalFile(toLoadOptions(args)) ?? undefined };
}

/** Runs a change of the unit file, given its text, or null if it does not exist. */
export function changeUnit(path: string, change: (before: string | null) => void): void {
  try {
    change(read(path));
  } catch (error) {
    if (!(error instanceof Error && 'errno' in error)) throw error;
    throw unitError(path, `cannot be changed: ${formatReason(error)}`);
  }
}

export function unitError(path: string, why: string): CommandError {
  return new CommandError([`latchkey: ${path} ${why}`]);
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}

/** A unit, the socket that its daemon will create (null for none), and why the configuration could not be read. */
export type Plan = UnitOptions & { readonly socket: string | null; readonly problem: string | null };

/** Plans the unit from the command line and the configuration that it names. */
export function planUnit({ user, program, config, stateDir, root }: ServiceArgs): Plan {
  const scope: UnitScope = user ? 'user' : 'system';
  const named = {
    scope,
    program: program === undefined ? thisProgram() : [program],
    config: config === undefined ? null : resolve(config),
    stateDir: stateDir === undefined ? null : resolve(stateDir),
  };
  const found = root === undefined && !user ? locateForUnit(named) : null;
  const location = found?.ok === true ? found.location : null;
  return {
    ...named,
    writes: location?.stateDir ?? named.stateDir ?? defaultStateDir,
    socket: location?.socket ?? null,
    problem: found?.ok === false ? found.errors.map(formatConfigError).join('; ') : null,
  };
}

/** Where state and socket will be for a daemon that systemd starts, without this user's environment. */
function locateForUnit({ config, stateDir }: Pick<UnitOptions, 'config' | 'stateDir'>): LocationResult {
  const machineWide = '/etc/latchkey/config.yaml';
  const file = config ?? (existsSync(machineWide) ? machineWide : undefined);
  return locateDaemon({
    // An empty file, so that the file of the working directory is not read.
    file: file ?? '/dev/null',
    flags: { state_dir: stateDir ?? undefined },
    environment: { STATE_DIRECTORY: defaultStateDir, RUNTIME_DIRECTORY: runtimeDirectory },
  });
}

/** The full path of this program: a service does not have this user's PATH. */
function thisProgram(): readonly string[] {
  if (isSea()) return [process.execPath];
  // The build puts the program into the folder of the launcher.
  const launcher = import.meta.filename.endsWith('.ts') ? '../../launcher.js' : 'launcher.js';
  return [process.execPath, join(import.meta.dirname, launcher)];
}

export function unitPath({ user, root = '/' }: ServiceArgs): string {
  const directory = user ? join(userConfiguration(), 'systemd/user') : unitFolder;
  return join(resolve(root), directory, 'latchkey.service');
}

function userConfiguration(): string {
  const given = process.env['XDG_CONFIG_HOME'] ?? '';
  if (isAbsolute(given)) return given;
  const home = homeDirectory();
  if (home === null) throw new EnvironmentError('this user has no home directory: set HOME');
  return join(home, '.config');
}

/** Whether systemd starts the unit at boot or login. */
export function isEnabled({ user }: ServiceArgs, path: string): boolean {
  const target = user ? 'default.target.wants' : 'multi-user.target.wants';
  return lstatSync(join(dirname(path), target, 'latchkey.service'), { throwIfNoEntry: false }) !== undefined;
}

export function systemctl({ user }: ServiceArgs): string {
  return user ? 'systemctl --user' : 'systemctl';
}
