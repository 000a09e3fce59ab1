import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve, win32 } from 'node:path';
import { findConfigurationFiles, homeDirectory, pathsOf } from '../../config/defaults.ts';
import { locateDaemon } from '../../config/load.ts';
import { makeDirectory } from '../../store/sqlite/files/private-file.ts';
import { CommandError, defineCommand } from '../command.ts';
import { hintFor, quoteForShell } from '../hint.ts';
import {
  changeUnit,
  checkSystem,
  isEnabled,
  type Plan,
  planService,
  platformOf,
  type ServiceArgs,
  serviceOptions,
  servicePath,
  unitError,
  withLocalFile,
} from './service/service-file.ts';
import { isUnchanged, isWithin, packagedUnitFolders, stateRoot } from './service/systemd-unit.ts';
import { type AccessProblems, examineReach, readUser, thisMachine } from './service/unit-reach.ts';
import { macLogs, macUser, windowsAccount, windowsSid } from './service/xml-service.ts';

const systemConfiguration = '/etc/latchkey/config.yaml';

export const commands = [
  defineCommand({
    command: 'print',
    describe: 'Print the file of the service; changes nothing',
    builder: serviceOptions,
    examples: [
      ['latchkey service print', 'to read it, or to put it elsewhere'],
      ['latchkey service print --platform win32', 'for a Windows machine that you prepare'],
    ],
    epilogue:
      'The file is a systemd unit on Linux, a launchd job on macOS, and on Windows a service for WinSW or, with --user, a task that starts at logon.',
    handler: async (options, output) => {
      const { path, text } = planService(withLocalFile(options));
      return await output.result({ path, unit: text }, text.trimEnd());
    },
  }),
  /** Starts nothing. */
  defineCommand({
    command: 'install',
    describe: 'Write the file of the service, and say what to do next',
    builder: serviceOptions,
    examples: [['sudo latchkey service install', 'for the system; with --user for yourself']],
    epilogue:
      'On Linux it writes a systemd unit, on macOS a launchd job. On Windows it writes the file for WinSW, a program that runs others as services, or with --user a task for schtasks.',
    handler: async (options, output) => {
      const args = withLocalFile(options);
      checkSystem(args);
      const { path, text, plan } = planService(args);
      const { refusals, warnings } = examinePlan(plan, args);
      if (refusals.length > 0) throw planError(refusals);
      if (warnings.length > 0) output.printError(warnings.map((warning) => `latchkey: ${warning}`));
      changeUnit(path, (before) => {
        if (before !== null && before !== text && !isUnchanged(before))
          throw unitError(path, 'was edited: move it away first. Nothing was changed.');
        makeDirectory(dirname(path));
        writeFileSync(path, encode(path, text), { mode: 0o644 });
      });
      return await output.result(
        { path },
        [`Installed ${path}. Next:`, ...stepsAfter(plan, args)].join('\n'),
      );
    },
  }),
  /** Stops nothing. */
  defineCommand({
    command: 'uninstall',
    describe: 'Remove the file of the service; the state stays',
    builder: serviceOptions,
    examples: [['sudo latchkey service uninstall', 'once it is disabled']],
    handler: async (args, output) => {
      checkSystem(args);
      const path = servicePath(args);
      changeUnit(path, (before) => {
        if (before === null) throw unitError(path, 'does not exist.');
        if (!isUnchanged(before))
          throw unitError(path, 'was edited: remove it yourself. Nothing was changed.');
        if (isEnabled(args, path))
          throw unitError(path, `is enabled. First: ${systemctl(args)} disable --now latchkey`);
        rmSync(path);
      });
      return await output.result(
        { path },
        [`Removed ${path}. Next:`, ...stepsAfterRemoval(args)].join('\n  '),
      );
    },
  }),
];

/** The Task Scheduler itself writes UTF-16. */
function encode(path: string, text: string): Buffer {
  return path.endsWith('-task.xml') ? Buffer.from(`\uFEFF${text}`, 'utf16le') : Buffer.from(text);
}

/** Checks what the service could not read or write. Another system and a user's own service are not checked. */
function examinePlan(plan: Plan | null, { user, root }: ServiceArgs): AccessProblems {
  if (plan === null || user || root !== undefined) return { refusals: [], warnings: [] };
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

function planError(refusals: readonly string[]): CommandError {
  return new CommandError([
    ...refusals.map((text) => `latchkey: ${text}`),
    'Nothing was installed. Put program and configuration where every user can read them, such as /usr/local and',
    `/etc/latchkey, and the state into ${stateRoot}; or install it for your own user: latchkey service install --user`,
  ]);
}

function stepsAfter(plan: Plan | null, args: ServiceArgs): readonly string[] {
  if (plan !== null) return stepsForSystemd(plan, args);
  // In the other system, its root is the root.
  const path = servicePath({ ...args, root: undefined });
  return platformOf(args) === 'darwin' ? stepsForLaunchd(path, args) : stepsForWindows(path, args);
}

/** The configuration file and the state directory that the service will have. They are in the same folder by default. */
function findPlaces(args: ServiceArgs): { readonly config: string; readonly state: string } {
  const platform = platformOf(args);
  const machine = { environment: process.env, home: homeDirectory() ?? '/', platform };
  const [ofUser, ofSystem] = findConfigurationFiles(machine);
  const usual = args.user ? ofUser : ofSystem;
  return { config: args.config ?? usual, state: args.stateDir ?? pathsOf(platform).dirname(usual) };
}

function stepsForLaunchd(path: string, args: ServiceArgs): readonly string[] {
  const quote = (word: string): string => quoteForShell(word, 'darwin');
  const { config, state } = findPlaces(args);
  const edit = `  edit ${quote(config)}`;
  const doctor = `  latchkey --state-dir ${quote(state)} doctor`;
  if (args.user) return [edit, `  launchctl bootstrap gui/$(id -u) ${quote(path)}`, doctor];
  return [
    `  sysadminctl -addUser ${macUser} -roleAccount -UID 360   (or another number that is free)`,
    `  install -d -o ${macUser} -m 0700 ${quote(state)} ${macLogs}`,
    edit,
    `  chown ${macUser}: that file and each secret file that it names, and chmod 0600 them`,
    `  launchctl bootstrap system ${quote(path)}`,
    doctor,
  ];
}

function stepsForWindows(path: string, args: ServiceArgs): readonly string[] {
  const quote = (word: string): string => quoteForShell(word, 'win32');
  const { config, state } = findPlaces(args);
  const edit = `  edit ${quote(config)}`;
  const doctor = `  latchkey --state-dir ${quote(state)} doctor`;
  if (args.user) {
    return [
      edit,
      `  schtasks /create /tn Latchkey /xml ${quote(path)}`,
      '  schtasks /run /tn Latchkey',
      doctor,
      'Each logon opens a window with the log. Closing the window stops Latchkey.',
    ];
  }
  // SYSTEM, the administrators and the service. Its owner may only read who has which rights.
  const rights = [
    'S-1-5-18:(OI)(CI)F',
    'S-1-5-32-544:(OI)(CI)F',
    `${windowsSid}:(OI)(CI)F`,
    'S-1-3-4:(OI)(CI)(RC)',
  ];
  return [
    `  mkdir ${quote(state)}`,
    `  icacls ${quote(state)} /inheritance:r /grant:r ${rights.map((right) => `"*${right}"`).join(' ')}`,
    edit,
    '  get WinSW 2 or 3 (https://github.com/winsw/winsw), and put it next to the file as latchkey-service.exe',
    `  cd ${quote(win32.dirname(path))}`,
    String.raw`  .\latchkey-service.exe install`,
    `  sc.exe config latchkey obj= "${windowsAccount}"`,
    String.raw`  .\latchkey-service.exe start`,
    doctor,
  ];
}

function stepsForSystemd({ writes }: Plan, args: ServiceArgs): readonly string[] {
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
    `  edit ${config ?? systemConfiguration}${namesState(args, writes) ? '' : `: it needs the line  state_dir: ${writes}`}`,
    '  chown latchkey: that file and each secret file that it names, and chmod 0600 them',
    '  systemctl daemon-reload',
    '  systemctl enable --now latchkey',
    doctor,
  ];
}

/** Whether the configuration file of the service names this state directory, so that every command finds the daemon. */
function namesState({ root = '/', config = systemConfiguration }: ServiceArgs, stateDir: string): boolean {
  const found = locateDaemon({ file: join(root, resolve(config)), environment: {} });
  return found.ok && found.location.namedBy === 'file' && found.location.stateDir === stateDir;
}

function systemctl({ user }: ServiceArgs): string {
  return user ? 'systemctl --user' : 'systemctl';
}

function stepsAfterRemoval(args: ServiceArgs): readonly string[] {
  const platform = platformOf(args);
  if (platform === 'darwin') return [`launchctl bootout ${args.user ? 'gui/$(id -u)' : 'system'}/latchkey`];
  if (platform === 'linux') return [`${systemctl(args)} daemon-reload`];
  // In Windows PowerShell, sc is another command.
  if (!args.user) return ['sc.exe stop latchkey', 'sc.exe delete latchkey'];
  return ['latchkey stop', 'schtasks /delete /tn Latchkey /f'];
}
