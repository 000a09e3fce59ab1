import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { homeDirectory } from '../../config/defaults.ts';
import { locateDaemon } from '../../config/load.ts';
import { makeDirectory } from '../../store/sqlite/files/private-file.ts';
import { CommandError, defineCommand } from '../../cli/command.ts';
import { hintFor, quoteForShell } from '../../cli/hint.ts';
import {
  changeUnit,
  checkSystem,
  isEnabled,
  namedOptions,
  type Plan,
  planUnit,
  platformOption,
  type ServicePlatform,
  thisPlatform,
  type UnitArgs,
  unitError,
  unitOptions,
  unitPath,
  withLocalFile,
} from './system-service/service-file.ts';
import {
  formatUnit,
  isUnchanged,
  isWithin,
  packagedUnitFolders,
  stateRoot,
} from './system-service/systemd-unit.ts';
import { type AccessProblems, examineReach, readUser, thisMachine } from './system-service/unit-reach.ts';
import { formatLaunchdJob, formatScheduledTask, formatWinswService } from './system-service/xml-service.ts';

const systemConfiguration = '/etc/latchkey/config.yaml';

export const commands = [
  defineCommand({
    command: 'print',
    describe: 'Print the file of the service; changes nothing',
    builder: { ...unitOptions, platform: platformOption },
    examples: [
      ['latchkey service print', 'to read it, or to put it elsewhere'],
      ['latchkey service print --platform win32', 'for a Windows machine that you prepare'],
    ],
    epilogue:
      'The file is a systemd unit on Linux, a launchd job on macOS, and on Windows a service for WinSW or, with --user, a task that starts at logon. What to do with the files for macOS and Windows is in examples/guides/platforms.md.',
    handler: async (args, output) => {
      const platform = args.platform ?? thisPlatform;
      const { path, text } = formatService(withLocalFile(args, platform), platform);
      return await output.result({ path, unit: text }, text.trimEnd());
    },
  }),
  /** Starts nothing. */
  defineCommand({
    command: 'install',
    describe: 'Write the unit of the service for systemd, and say what to do next',
    builder: unitOptions,
    examples: [['sudo latchkey service install', 'for the system; with --user for yourself']],
    epilogue: 'For macOS and Windows, latchkey service print prints a file.',
    handler: async (options, output) => {
      checkSystem(options);
      const args = withLocalFile(options, 'linux');
      const plan = planUnit(args);
      const path = unitPath(args);
      const text = formatUnit(plan);
      const { refusals, warnings } = examinePlan(plan, args);
      if (refusals.length > 0) throw planError(refusals);
      if (warnings.length > 0) output.printError(warnings.map((warning) => `latchkey: ${warning}`));
      changeUnit(path, (before) => {
        if (before !== null && before !== text && !isUnchanged(before))
          throw unitError(path, 'was edited: move it away first. Nothing was changed.');
        makeDirectory(dirname(path));
        writeFileSync(path, text, { mode: 0o644 });
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
    describe: 'Remove the unit of the service; the state stays',
    builder: unitOptions,
    examples: [['sudo latchkey service uninstall', 'once it is disabled']],
    handler: async (args, output) => {
      checkSystem(args);
      const path = unitPath(args);
      const systemctl = args.user ? 'systemctl --user' : 'systemctl';
      changeUnit(path, (before) => {
        if (before === null) throw unitError(path, 'does not exist.');
        if (!isUnchanged(before))
          throw unitError(path, 'was edited: remove it yourself. Nothing was changed.');
        if (isEnabled(args, path))
          throw unitError(path, `is enabled. First: ${systemctl} disable --now latchkey`);
        rmSync(path);
      });
      return await output.result({ path }, `Removed ${path}. Next:\n  ${systemctl} daemon-reload`);
    },
  }),
];

/** The file of a service and where it belongs; for another machine, the path as people write it there. */
function formatService(args: UnitArgs, platform: ServicePlatform): { path: string; text: string } {
  if (platform === 'linux') return { path: unitPath(args), text: formatUnit(planUnit(args)) };
  const { USERDOMAIN: domain, USERNAME: name } = process.env;
  const isHere = platform === thisPlatform;
  const options = {
    ...namedOptions(args, platform),
    home: isHere ? homeDirectory() : null,
    userName: isHere && domain !== undefined && name !== undefined ? `${domain}\\${name}` : null,
  };
  if (platform === 'darwin') {
    const path = `${args.user ? '~/Library/LaunchAgents' : '/Library/LaunchDaemons'}/latchkey.plist`;
    return { path, text: formatLaunchdJob(options) };
  }
  return args.user
    ? {
        path: String.raw`%LOCALAPPDATA%\Latchkey\latchkey-task.xml`,
        text: formatScheduledTask(options),
      }
    : {
        path: String.raw`C:\Program Files\Latchkey\latchkey-service.xml`,
        text: formatWinswService(options),
      };
}

/** Checks what the service could not read or write. Another system and a user's own service are not checked. */
function examinePlan(plan: Plan, { user, root }: UnitArgs): AccessProblems {
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

function planError(refusals: readonly string[]): CommandError {
  return new CommandError([
    ...refusals.map((text) => `latchkey: ${text}`),
    'Nothing was installed. Put program and configuration where every user can read them, such as /usr/local and',
    `/etc/latchkey, and the state into ${stateRoot}; or install it for your own user: latchkey service install --user`,
  ]);
}

function stepsAfter({ writes }: Plan, args: UnitArgs): readonly string[] {
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
function namesState({ root = '/', config = systemConfiguration }: UnitArgs, stateDir: string): boolean {
  const found = locateDaemon({ file: join(root, resolve(config)), environment: {} });
  return found.ok && found.location.namedBy === 'file' && found.location.stateDir === stateDir;
}
