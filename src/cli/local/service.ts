import { lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { isSea } from 'node:sea';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { formatReason } from '../../config/fault.ts';
import { type Command, defineCommand, type GlobalOptions, textOption } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import type { Output } from '../output.ts';
import type { Syntax } from '../syntax/declaration.ts';
import { formatUnit, isUnchanged, type UnitScope } from './systemd-unit.ts';

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
        user: { type: 'boolean', default: false, describe: 'A service of this user, not of the machine' },
        root: textOption('Directory of another system, for images', 'folder'),
        program: textOption('Program that the service starts; default: this one', 'file'),
      })
      .example(line, says);

const printing = declare('latchkey service print', 'to read it, or to put it where you like');
const installing = declare('sudo latchkey service install', 'for the machine; with --user for yourself');
const uninstalling = declare('sudo latchkey service uninstall', 'once it is disabled');

/** `service print`. */
export const printUnit: Command = defineCommand(printing, async (args, output) => {
  if (args.json) output.printJson({ path: pathOf(args), unit: unitOf(args) });
  else output.print(unitOf(args).trimEnd());
  return exitCode.done;
});

/** `service install`: writes a unit for systemd; nothing is started by it. */
export const installUnit: Command = defineCommand(installing, async (args, output) => {
  const [path, unit] = [pathOf(args), unitOf(args)];
  return changing(path, output, (before) => {
    if (before !== null && before !== unit && !isUnchanged(before)) {
      return refuse(output, path, 'is not as it was installed: move it away first. Nothing was changed.');
    }
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, unit, { mode: 0o644 });
    if (args.json) output.printJson({ path });
    else output.print([`Installed ${path}. Next:`, ...stepsAfterInstall(args)].join('\n'));
    return exitCode.done;
  });
});

/** `service uninstall`: nothing is stopped by it. */
export const uninstallUnit: Command = defineCommand(uninstalling, async (args, output) => {
  const path = pathOf(args);
  return changing(path, output, (before) => {
    if (before === null) return refuse(output, path, 'is not there.');
    if (!isUnchanged(before)) {
      return refuse(output, path, 'is not as it was installed: remove it yourself. Nothing was changed.');
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

function unitOf({ user, program, config }: Args): string {
  const scope: UnitScope = user ? 'user' : 'system';
  return formatUnit({
    scope,
    program: program === undefined ? thisProgram() : [program],
    config: config === undefined ? null : resolve(config),
  });
}

/** The full path of this program, since a service does not have this user's PATH. */
function thisProgram(): readonly string[] {
  if (isSea()) return [process.execPath];
  return [
    process.execPath,
    join(import.meta.dirname, `../main${import.meta.filename.endsWith('.ts') ? '.ts' : '.js'}`),
  ];
}

function pathOf({ user, root = '/' }: Args): string {
  const given = process.env['XDG_CONFIG_HOME'] ?? '';
  const home = isAbsolute(given) ? given : join(homedir(), '.config');
  const directory = user ? join(home, 'systemd/user') : '/etc/systemd/system';
  return join(resolve(root), directory, 'latchkey.service');
}

function stepsAfterInstall({ user, config }: Args): readonly string[] {
  if (user) {
    return [
      `  edit ${config ?? '~/.config/latchkey/config.yaml'}`,
      '  systemctl --user daemon-reload',
      '  systemctl --user enable --now latchkey',
      '  latchkey doctor',
      'To have it run while you are not logged in: loginctl enable-linger',
    ];
  }
  return [
    '  useradd --system --home-dir /var/lib/latchkey --shell /usr/sbin/nologin latchkey',
    `  edit ${config ?? '/etc/latchkey/config.yaml'}: it needs the line  state_dir: /var/lib/latchkey`,
    '  chown latchkey: each secret file that it names, and chmod 0600 it',
    '  systemctl daemon-reload',
    '  systemctl enable --now latchkey',
    '  latchkey doctor',
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
