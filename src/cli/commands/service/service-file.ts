import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { isSea } from 'node:sea';
import { dirname, isAbsolute, join, posix, resolve, win32 } from 'node:path';
import { EnvironmentError, formatConfigError, formatReason } from '../../../config/errors.ts';
import { homeDirectory, pathsOf } from '../../../config/defaults.ts';
import { findLocalFile, locateDaemon, type LocationResult } from '../../../config/load.ts';
import { type Args, CommandError, textOption } from '../../command.ts';
import { toLoadOptions } from '../../configuration.ts';
import {
  defaultStateDir,
  formatUnit,
  runtimeDirectory,
  type ServiceOptions,
  unitFolder,
  type UnitOptions,
} from './systemd-unit.ts';
import {
  formatLaunchdJob,
  formatScheduledTask,
  formatWinswService,
  type XmlServiceOptions,
} from './xml-service.ts';

const platforms = ['linux', 'darwin', 'win32'] as const;

export type ServicePlatform = (typeof platforms)[number];

export const serviceOptions = {
  user: { type: 'boolean', default: false, describe: 'A service of this user instead of the system' },
  root: textOption('Root directory of another system, such as an image', 'folder'),
  platform: { choices: platforms, describe: 'Platform of that other system; default: this one' },
  program: textOption('Program that the service starts; default: this one', 'file'),
} as const;

export type ServiceArgs = Args<typeof serviceOptions>;

/** Where neither systemd nor launchd nor Windows runs, the unit for systemd is a start. */
const thisPlatform: ServicePlatform = platforms.find((each) => each === process.platform) ?? 'linux';

export function platformOf({ platform }: ServiceArgs): ServicePlatform {
  return platform ?? thisPlatform;
}

/** Services start in another directory, so the configuration file of this directory has to be named. */
export function withLocalFile(args: ServiceArgs): ServiceArgs {
  const isElsewhere = args.root !== undefined || platformOf(args) !== thisPlatform;
  if (args.config !== undefined || isElsewhere) return args;
  return { ...args, config: findLocalFile(toLoadOptions(args)) ?? undefined };
}

/** Refuses to install for another platform on this machine. */
export function checkSystem(args: ServiceArgs): void {
  const platform = platformOf(args);
  if (platform === thisPlatform) return;
  const what = args.user
    ? 'a service of a user'
    : args.root === undefined
      ? 'a service without --root'
      : null;
  if (what === null) return;
  throw new CommandError([
    `latchkey: this machine is ${thisPlatform}: ${what} cannot be installed here for ${platform}. See: latchkey service print --platform ${platform}`,
  ]);
}

/** The file of a service: its path and text. */
export interface ServiceFile {
  readonly path: string;
  readonly text: string;
}

/** The file of a service on its platform. `plan`: what a systemd unit can access; null on other platforms. */
export function planService(args: ServiceArgs): ServiceFile & { readonly plan: Plan | null } {
  const path = servicePath(args);
  const platform = platformOf(args);
  if (platform === 'linux') {
    const plan = planUnit(args);
    return { path, text: formatUnit(plan), plan };
  }
  const options = xmlOptions(args);
  if (platform === 'darwin') return { path, text: formatLaunchdJob(options), plan: null };
  return { path, text: args.user ? formatScheduledTask(options) : formatWinswService(options), plan: null };
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
    const content = readFileSync(path);
    return content.toString(content[0] === 0xff ? 'utf16le' : 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}

/** A unit, the socket that its daemon will create (null for none), and why the configuration could not be read. */
export type Plan = UnitOptions & { readonly socket: string | null; readonly problem: string | null };

/** Plans the unit from the command line and the configuration that it names. */
function planUnit(args: ServiceArgs): Plan {
  const { user, root } = args;
  const named = namedOptions(args);
  const found = root === undefined && !user ? locateForUnit(named) : null;
  const location = found?.ok === true ? found.location : null;
  return {
    ...named,
    writes: location?.stateDir ?? named.stateDir ?? defaultStateDir,
    socket: location?.socket ?? null,
    problem: found?.ok === false ? found.errors.map(formatConfigError).join('; ') : null,
  };
}

function namedOptions(args: ServiceArgs): ServiceOptions {
  const { user, program, config, stateDir } = args;
  return {
    scope: user ? 'user' : 'system',
    program: program === undefined ? defaultProgram(platformOf(args)) : [program],
    config: config === undefined ? null : fullPath(args, config),
    stateDir: stateDir === undefined ? null : fullPath(args, stateDir),
  };
}

/** A relative path is in the working directory, which only a service of this machine has. */
function fullPath(args: ServiceArgs, path: string): string {
  const platform = platformOf(args);
  if (platform === thisPlatform) return resolve(path);
  if (pathsOf(platform).isAbsolute(path)) return path;
  throw new CommandError([`latchkey: ${path} is not a full path on ${platform}`]);
}

function xmlOptions(args: ServiceArgs): XmlServiceOptions {
  const isHere = platformOf(args) === thisPlatform;
  const { USERDOMAIN: domain, USERNAME: name } = process.env;
  return {
    ...namedOptions(args),
    home: isHere ? homeDirectory() : null,
    userName: isHere && domain !== undefined && name !== undefined ? `${domain}\\${name}` : null,
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
function defaultProgram(platform: ServicePlatform): readonly string[] {
  if (platform !== thisPlatform) {
    return [
      platform === 'win32' ? String.raw`C:\Program Files\Latchkey\latchkey.exe` : '/usr/local/bin/latchkey',
    ];
  }
  if (isSea()) return [process.execPath];
  // The build puts the program into the folder of the launcher.
  const launcher = import.meta.filename.endsWith('.ts') ? '../../launcher.js' : 'launcher.js';
  return [process.execPath, join(import.meta.dirname, launcher)];
}

/** The path of the file. Windows has no folder for such files. */
export function servicePath(args: ServiceArgs): string {
  const { user, root } = args;
  const platform = platformOf(args);
  if (platform === 'linux') {
    return join(
      resolve(root ?? '/'),
      user ? join(userConfiguration(), 'systemd/user') : unitFolder,
      'latchkey.service',
    );
  }
  const name = platform === 'darwin' ? 'latchkey.plist' : user ? 'latchkey-task.xml' : 'latchkey-service.xml';
  if (root !== undefined) {
    const folder = platform === 'darwin' ? 'Library/LaunchDaemons' : 'Program Files/Latchkey';
    return join(resolve(root), folder, name);
  }
  return pathsOf(platform).join(serviceFolder(platform, user), name);
}

/** The folder of the file on this machine; for another platform, as people write it there. */
function serviceFolder(platform: 'darwin' | 'win32', user: boolean): string {
  if (platform === 'darwin' && !user) return '/Library/LaunchDaemons';
  if (platform === 'darwin')
    return posix.join(platform === thisPlatform ? homeOf() : '~', 'Library/LaunchAgents');
  const [variable, usual] = user
    ? ['LOCALAPPDATA', '%LOCALAPPDATA%']
    : ['ProgramFiles', String.raw`C:\Program Files`];
  const folder = platform === thisPlatform ? process.env[variable] : undefined;
  return win32.join(folder ?? usual, 'Latchkey');
}

function userConfiguration(): string {
  const given = process.env['XDG_CONFIG_HOME'] ?? '';
  if (isAbsolute(given)) return given;
  return join(homeOf(), '.config');
}

function homeOf(): string {
  const home = homeDirectory();
  if (home === null) throw new EnvironmentError('this user has no home directory: set HOME');
  return home;
}

/** Whether systemd starts the unit at boot or login. Other platforms do not show that in a file. */
export function isEnabled(args: ServiceArgs, path: string): boolean {
  if (platformOf(args) !== 'linux') return false;
  const target = args.user ? 'default.target.wants' : 'multi-user.target.wants';
  return lstatSync(join(dirname(path), target, 'latchkey.service'), { throwIfNoEntry: false }) !== undefined;
}
