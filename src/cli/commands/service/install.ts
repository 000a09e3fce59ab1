import { existsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { makeDirectory } from '../../../store/sqlite/files/private-file.ts';
import { CommandError, defineCommand } from '../../command.ts';
import { hintFor, quoteForShell } from '../../hint.ts';
import {
  changeUnit,
  type Plan,
  planUnit,
  type ServiceArgs,
  serviceOptions,
  unitError,
  unitPath,
  withLocalFile,
} from './service.ts';
import { formatUnit, isUnchanged, isWithin, packagedUnitFolders, stateRoot } from './systemd-unit.ts';
import { examineReach, type AccessProblems, readUser, thisMachine } from './unit-reach.ts';

/** Starts nothing. */
export const command = defineCommand({
  command: 'install',
  describe: 'Write the systemd unit, and say what to do next',
  builder: serviceOptions,
  examples: [['sudo latchkey service install', 'for the system; with --user for yourself']],
  handler: async (options, output) => {
    const args = withLocalFile(options);
    const plan = planUnit(args);
    const { refusals, warnings } = examinePlan(plan, args);
    if (refusals.length > 0) throw planError(refusals);
    if (warnings.length > 0) output.printError(warnings.map((text) => `latchkey: ${text}`));
    const [path, unit] = [unitPath(args), formatUnit(plan)];
    changeUnit(path, (before) => {
      if (before !== null && before !== unit && !isUnchanged(before))
        throw unitError(path, 'was edited: move it away first. Nothing was changed.');
      makeDirectory(dirname(path));
      writeFileSync(path, unit, { mode: 0o644 });
    });
    const lines = [`Installed ${path}. Next:`, ...stepsAfterInstall(plan, args)];
    return await output.result({ path }, lines.join('\n'));
  },
});

/** Checks what the service could not read or write. Another system and a user's own service are not checked. */
function examinePlan(plan: Plan, { user, root }: ServiceArgs): AccessProblems {
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

function stepsAfterInstall({ writes }: Plan, args: ServiceArgs): readonly string[] {
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
