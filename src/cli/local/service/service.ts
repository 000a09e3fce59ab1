import { existsSync, lstatSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isSea } from 'node:sea';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { EnvironmentError } from '../../../config/fault/environment-error.ts';
import { formatFault, formatReason } from '../../../config/fault/fault.ts';
import { homeDirectory } from '../../../config/home.ts';
import { findLocalFile, locateDaemon } from '../../../config/load.ts';
import type { LocationResult } from '../../../config/location.ts';
import { type Command, defineCommand, type GlobalOptions, textOption } from '../../command.ts';
import { toLoadOptions } from '../../configuration.ts';
import { exitCode } from '../../exit-code.ts';
import { hintFor, quoteForShell } from '../../hint.ts';
import type { Output } from '../../output.ts';
import type { Syntax } from '../../syntax/declaration.ts';
import { makeDirectory } from '../../../store/sqlite/files/private-file.ts';
import {
  defaultStateDir,
  formatUnit,
  isUnchanged,
  isWithin,
  packagedUnitFolders,
  runtimeDirectory,
  stateRoot,
  unitFolder,
  type UnitOptions,
  type UnitScope,
} from './systemd-unit.ts';
import { examineReach, readUser, thisMachine, type Reach } from './unit-reach.ts';

type ServiceOptions = GlobalOptions & {
  user: boolean;
  root: string | undefined;
  program: string | undefined;
};
type Args = ServiceOptions;

/** What each of these commands takes, and how it is called. */
const declare =
  (line: string, says: string) =>
  (syntax: Syntax<GlobalOptions>): Syntax<ServiceOptions> =>
    syntax
      .options({
        user: { type: 'boolean', default: false, describe: 'A service of this user instead of the system' },
        root: textOption('Root directory of another system, such as an image', 'folder'),
        program: textOption('Program that the service starts; default: this one', 'file'),
      })
      .example(line, says);

const printing = declare('latchkey service print', 'to read it, or to put it elsewhere');
const installing = declare('sudo latchkey service install', 'for the system; with --user for yourself');
const uninstalling = declare('sudo latchkey service uninstall', 'once it is disabled');

/** `service print`. */
export const printUnit: Command = defineCommand(printing, async (given, output) => {
  const args = withLocalFile(given);
  const unit = formatUnit(planUnit(args));
  if (args.json) output.printJson({ path: pathOf(args), unit });
  else output.print(unit.trimEnd());
  return exitCode.done;
});

/** `service install`: writes a unit for systemd; nothing is started by it. */
export const installUnit: Command = defineCommand(installing, async (given, output) => {
  const args = withLocalFile(given);
  const plan = planUnit(args);
  const { refusals, warnings } = examinePlan(plan, args);
  if (refusals.length > 0) return refusePlan(output, refusals);
  if (warnings.length > 0) output.complain(warnings.map((text) => `latchkey: ${text}`));
  const [path, unit] = [pathOf(args), formatUnit(plan)];
  return changing(path, output, (before) => {
    if (before !== null && before !== unit && !isUnchanged(before)) {
      return refuse(
        output,
        path,
        'is not as service install wrote it: move it away first. Nothing was changed.',
      );
    }
    makeDirectory(dirname(path));
    writeFileSync(path, unit, { mode: 0o644 });
    if (args.json) output.printJson({ path });
    else output.print([`Installed ${path}. Next:`, ...stepsAfterInstall(plan, args)].join('\n'));
    return exitCode.done;
  });
});

/** `service uninstall`: nothing is stopped by it. */
export const uninstallUnit: Command = defineCommand(uninstalling, async (args, output) => {
  const path = pathOf(args);
  return changing(path, output, (before) => {
    if (before === null) return refuse(output, path, 'does not exist.');
    if (!isUnchanged(before)) {
      return refuse(
        output,
        path,
        'is not as service install wrote it: remove it yourself. Nothing was changed.',
      );
    }
    if (isEnabled(args, path)) {
      return refuse(output, path, `is enabled. First: ${systemctl(args)} disable --now latchkey`);
    }
    rmSync(path);
    if (args.json) output.printJson({ path });
    else output.print(`Removed ${path}. Next:\n  ${systemctl(args)} daemon-reload`);
    return exitCode.done;
  });
});

/** systemd starts the program in another directory: the configuration that is found in this one has to be named. */
function withLocalFile(args: Args): Args {
  if (args.config !== undefined || args.root !== undefined) return args;
  return { ...args, config: findLocalFile(toLoadOptions(args)) ?? undefined };
}

function changing(path: string, output: Output, change: (before: string | null) => number): number {
  try {
    return change(read(path));
  } catch (error) {
    if (!(error instanceof Error && 'errno' in error)) throw error;
    return refuse(output, path, `cannot be changed: ${formatReason(error)}`);
  }
}

function refuse(output: Output, path: string, why: string): number {
  output.complain([`latchkey: ${path} ${why}`]);
  return exitCode.failed;
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}

/** A unit, and the socket that the program is going to make by it; null: none. */
type Plan = UnitOptions & { readonly socket: string | null; readonly problem: string | null };

/** What the unit is to be, as far as this command line and the configuration that it names decide. */
function planUnit({ user, program, config, stateDir, root }: Args): Plan {
  const scope: UnitScope = user ? 'user' : 'system';
  const named = {
    scope,
    program: program === undefined ? thisProgram() : [program],
    config: config === undefined ? null : resolve(config),
    stateDir: stateDir === undefined ? null : resolve(stateDir),
  };
  const found = root === undefined && !user ? locateForUnit(named) : null;
  const place = found?.ok === true ? found.location : null;
  return {
    ...named,
    writes: place?.stateDir ?? named.stateDir ?? defaultStateDir,
    socket: place?.socket ?? null,
    problem: found?.ok === false ? found.faults.map(formatFault).join('; ') : null,
  };
}

/** Where state and socket will be for a daemon that systemd starts, which has not this user's environment. */
function locateForUnit({ config, stateDir }: Pick<UnitOptions, 'config' | 'stateDir'>): LocationResult {
  const machineWide = '/etc/latchkey/config.yaml';
  const file = config ?? (existsSync(machineWide) ? machineWide : undefined);
  return locateDaemon({
    // None, rather than that of the folder in which this command is run.
    file: file ?? '/dev/null',
    flags: { state_dir: stateDir ?? undefined },
    environment: { STATE_DIRECTORY: defaultStateDir, RUNTIME_DIRECTORY: runtimeDirectory },
  });
}

/** Another system, and what a user's own service reaches, are not looked at. */
function examinePlan(plan: Plan, { user, root }: Args): Reach {
  if (user || root !== undefined) return { refusals: [], warnings: [] };
  const { refusals, warnings } = examineReach({ ...plan, stateDir: plan.writes }, thisMachine());
  const covered = packagedUnitFolders
    .map((folder) => join(folder, 'latchkey.service'))
    .find((path) => existsSync(path));
  return {
    refusals,
    warnings: [
      ...warnings,
      ...(plan.problem === null ? [] : [`the configuration could not be checked: ${plan.problem}`]),
      ...(covered === undefined ? [] : [`this unit overrides that of a package, ${covered}`]),
    ],
  };
}

function refusePlan(output: Output, refusals: readonly string[]): number {
  output.complain([
    ...refusals.map((text) => `latchkey: ${text}`),
    'Nothing was installed. Put program and configuration where every user can read them, such as /usr/local and',
    `/etc/latchkey, and the state into ${stateRoot}; or install it for your own user: latchkey service install --user`,
  ]);
  return exitCode.failed;
}

/** The full path of this program, since a service does not have this user's PATH. */
function thisProgram(): readonly string[] {
  if (isSea()) return [process.execPath];
  // The build has all of the program in the folder of the launcher.
  const launcher = import.meta.filename.endsWith('.ts') ? '../../launcher.js' : 'launcher.js';
  return [process.execPath, join(import.meta.dirname, launcher)];
}

function pathOf({ user, root = '/' }: Args): string {
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

function stepsAfterInstall({ writes }: Plan, args: Args): readonly string[] {
  const { user, config, root = '/' } = args;
  const doctor = `  ${hintFor(args)('doctor')}`;
  if (user) {
    return [
      `  edit ${config ?? '~/.config/latchkey/config.yaml'}`,
      '  systemctl --user daemon-reload',
      '  systemctl --user enable --now latchkey',
      doctor,
      'To keep it running while you are not logged in: loginctl enable-linger',
    ];
  }
  return [
    ...(readUser(root) === null
      ? ['  useradd --system --home-dir /nonexistent --shell /usr/sbin/nologin latchkey']
      : []),
    ...(isWithin(writes, [stateRoot])
      ? []
      : [`  install -d -o latchkey -g latchkey -m 0700 ${quoteForShell(writes)}`]),
    `  edit ${config ?? '/etc/latchkey/config.yaml'}: it needs the line  state_dir: ${writes}`,
    '  chown latchkey: that file and each secret file that it names, and chmod 0600 them',
    '  systemctl daemon-reload',
    '  systemctl enable --now latchkey',
    doctor,
  ];
}

/** Whether systemd starts it at boot or login. */
function isEnabled({ user }: Args, path: string): boolean {
  const target = user ? 'default.target.wants' : 'multi-user.target.wants';
  return lstatSync(join(dirname(path), target, 'latchkey.service'), { throwIfNoEntry: false }) !== undefined;
}

function systemctl({ user }: Args): string {
  return user ? 'systemctl --user' : 'systemctl';
}
