import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { isSea } from 'node:sea';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { EnvironmentError, formatConfigError, formatReason } from '../../../config/errors.ts';
import { homeDirectory, pathsOf } from '../../../config/defaults.ts';
import { findLocalFile, locateDaemon, type LocationResult } from '../../../config/load.ts';
import { type Args, CommandError, textOption } from '../../../cli/command.ts';
import { toLoadOptions } from '../../../cli/configuration.ts';
import {
  defaultStateDir,
  runtimeDirectory,
  type ServiceOptions,
  unitFolder,
  type UnitOptions,
  isUnitFor,
  packagedUnitFolders,
} from './systemd-unit.ts';
import { readText } from './unit-reach.ts';
import { isXmlServiceFor } from './xml-service.ts';

const platforms = ['linux', 'darwin', 'win32'] as const;

export type ServicePlatform = (typeof platforms)[number];

export const unitOptions = {
  user: { type: 'boolean', default: false, describe: 'A service of this user instead of the system' },
  root: textOption('Root directory of another system, such as an image', 'folder'),
  program: textOption('Program that the service starts; default: this one', 'file'),
} as const;

export const platformOption = {
  choices: platforms,
  describe: 'Platform of the service; default: this one',
} as const;

export type UnitArgs = Args<typeof unitOptions>;

/** Where neither systemd nor launchd nor Windows runs, the unit for systemd is a start. */
export const thisPlatform: ServicePlatform = platforms.find((each) => each === process.platform) ?? 'linux';

/** Services start in another directory, so the configuration file of this directory has to be named. */
export function withLocalFile(args: UnitArgs, platform: ServicePlatform): UnitArgs {
  const isElsewhere = args.root !== undefined || platform !== thisPlatform;
  if (args.config !== undefined || isElsewhere) return args;
  return { ...args, config: findLocalFile(toLoadOptions(args)) ?? undefined };
}

/** Refuses to install where there is no systemd. */
export function checkSystem({ root }: Pick<UnitArgs, 'root'>, platform = thisPlatform): void {
  if (platform === 'linux' || root !== undefined) return;
  throw new CommandError([
    'latchkey: only services of systemd can be installed. Print the file of a service: latchkey service print',
  ]);
}

/** Runs a change of the unit file, given its text, or null if it does not exist. */
export function changeUnit(path: string, change: (before: string | null) => void): void {
  try {
    change(existsSync(path) ? readFileSync(path, 'utf8') : null);
  } catch (error) {
    if (!(error instanceof Error && 'errno' in error)) throw error;
    throw unitError(path, `cannot be changed: ${formatReason(error)}`);
  }
}

export function unitError(path: string, why: string): CommandError {
  return new CommandError([`latchkey: ${path} ${why}`]);
}

/** A unit, the socket that its daemon will create (null for none), and why the configuration could not be read. */
export type Plan = UnitOptions & { readonly socket: string | null; readonly problem: string | null };

/** Plans the unit from the command line and the configuration that it names. */
export function planUnit(args: UnitArgs): Plan {
  const { user, root } = args;
  const named = namedOptions(args, 'linux');
  const found = root === undefined && !user ? locateForUnit(named) : null;
  const location = found?.ok === true ? found.location : null;
  return {
    ...named,
    writes: location?.stateDir ?? named.stateDir ?? defaultStateDir,
    socket: location?.socket ?? null,
    problem: found?.ok === false ? found.errors.map(formatConfigError).join('; ') : null,
  };
}

/** What the command line says about a service on a platform. */
export function namedOptions(args: UnitArgs, platform: ServicePlatform): ServiceOptions {
  const { user, program, config, stateDir } = args;
  return {
    scope: user ? 'user' : 'system',
    program: program === undefined ? defaultProgram(platform) : [program],
    config: config === undefined ? null : fullPath(config, platform),
    stateDir: stateDir === undefined ? null : fullPath(stateDir, platform),
  };
}

/** A relative path is in the working directory, which only a service of this machine has. */
function fullPath(path: string, platform: ServicePlatform): string {
  if (platform === thisPlatform) return resolve(path);
  if (pathsOf(platform).isAbsolute(path)) return path;
  throw new CommandError([`latchkey: ${path} is not a full path on ${platform}`]);
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
  const launcher = import.meta.filename.endsWith('.ts') ? '../../../cli/launcher.js' : 'launcher.js';
  return [process.execPath, join(import.meta.dirname, launcher)];
}

export function unitPath({ user, root }: UnitArgs): string {
  const folder = user ? join(userConfiguration(), 'systemd/user') : unitFolder;
  return join(resolve(root ?? '/'), folder, 'latchkey.service');
}

function userConfiguration(): string {
  const given = process.env['XDG_CONFIG_HOME'] ?? '';
  if (isAbsolute(given)) return given;
  const home = homeDirectory();
  if (home === null) throw new EnvironmentError('this user has no home directory: set HOME');
  return join(home, '.config');
}

/** Whether systemd starts the unit at boot or login. */
export function isEnabled({ user }: UnitArgs, path: string): boolean {
  const target = user ? 'default.target.wants' : 'multi-user.target.wants';
  return lstatSync(join(dirname(path), target, 'latchkey.service'), { throwIfNoEntry: false }) !== undefined;
}

/** The command that starts the service of a state directory; null if no service on this machine is for that directory. */
export function startCommandOf(
  stateDir: string,
  platform: NodeJS.Platform = process.platform,
  folders: readonly string[] = serviceFolders(platform),
): string | null {
  const [name, command, isFor] =
    platform === 'win32'
      ? (['latchkey-service.xml', 'sc.exe start latchkey', isXmlServiceFor] as const)
      : platform === 'darwin'
        ? (['latchkey.plist', 'sudo launchctl kickstart system/latchkey', isXmlServiceFor] as const)
        : (['latchkey.service', 'systemctl start latchkey', isUnitFor] as const);
  return folders.some((folder) => isFor(readText(join(folder, name)), stateDir)) ? command : null;
}

function serviceFolders(platform: NodeJS.Platform): readonly string[] {
  if (platform === 'win32')
    return [join(process.env['ProgramFiles'] ?? String.raw`C:\Program Files`, 'Latchkey')];
  return platform === 'darwin' ? ['/Library/LaunchDaemons'] : [unitFolder, ...packagedUnitFolders];
}
