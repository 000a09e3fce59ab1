import { hash } from 'node:crypto';
import { relative } from 'node:path';

/** A service of the machine with its own user, or a service of the user who installs it. */
export type UnitScope = 'system' | 'user';

export interface ServiceOptions {
  readonly scope: UnitScope;
  /** The words that start the program. */
  readonly program: readonly string[];
  /** The configuration file; null for the default paths. */
  readonly config: string | null;
  /** The state directory of the command line; null if the configuration or the service names it. */
  readonly stateDir: string | null;
}

export interface UnitOptions extends ServiceOptions {
  /** The state directory in effect: a system unit can write nowhere else. */
  readonly writes: string;
}

/** The default state directory of a system unit. */
export const defaultStateDir = '/var/lib/latchkey';
/** systemd creates a state directory in this folder. Elsewhere it must exist. */
export const stateRoot = '/var/lib';
export const runtimeDirectory = '/run/latchkey';
/** The folders of system units: installed by the administrator, and by packages. */
export const unitFolder = '/etc/systemd/system';
export const packagedUnitFolders: readonly string[] = ['/usr/lib/systemd/system', '/lib/systemd/system'];
/** The folders that ProtectHome= hides. */
export const homes: readonly string[] = ['/home', '/root', '/run/user'];

/** Whether a path is one of these folders or in one of them. All are absolute. */
export function isWithin(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => path === folder || path.startsWith(`${folder}/`));
}

/** Writes the systemd unit. */
export function formatUnit(options: UnitOptions): string {
  const [body, edit] =
    options.scope === 'system'
      ? [systemUnit(options), 'systemctl edit']
      : [userUnit(options), 'systemctl --user edit'];
  return `# ${markOf(body)} To change it: ${edit} latchkey\n${body}`;
}

/** The launcher keeps compiled code here, because the service user has no home. The executable contains it. */
const compiledCode = `CacheDirectory=latchkey
CacheDirectoryMode=0700
`;

/** The first line of a unit has a hash of the others, which detects edits. */
function markOf(body: string): string {
  return `Written by: latchkey service install (${hash('sha256', body, 'hex').slice(0, 16)}).`;
}

/** Whether a unit was written by a version of this program and not edited. */
export function isUnchanged(unit: string): boolean {
  const [first = '', ...others] = unit.split('\n');
  return first.includes(markOf(others.join('\n')));
}

function systemUnit(options: UnitOptions): string {
  return `[Unit]
Description=Latchkey, license verification for your software
After=network-online.target nss-lookup.target
Wants=network-online.target

[Service]
${service(options)}
User=latchkey
Group=latchkey
${writable(options.writes)}
${options.program.length > 1 ? compiledCode : ''}RuntimeDirectory=latchkey
RuntimeDirectoryMode=0755
UMask=0077

# The service can write only to its own directories, and sees little of the machine.
ProtectSystem=strict
ProtectHome=${needsHome(options) ? 'read-only' : 'yes'}
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
# The JIT compiler makes memory executable, so MemoryDenyWriteExecute must stay off.
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
LockPersonality=yes
RemoveIPC=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
`;
}

/** The systemd of a user cannot set up a sandbox. State and socket are at the user's default paths. */
function userUnit(options: UnitOptions): string {
  return `[Unit]
Description=Latchkey, license verification for your software

[Service]
${service(options)}
NoNewPrivileges=yes
UMask=0077

[Install]
WantedBy=default.target
`;
}

/** Whether a unit that `formatUnit` wrote is for the daemon of a state directory. */
export function isUnitFor(unit: string, stateDir: string): boolean {
  const [line = ''] = writable(stateDir).split('\n');
  return unit.split('\n').includes(line);
}

/** systemd creates a directory in /var/lib for the unit's user alone. */
function writable(path: string): string {
  if (!path.startsWith(`${stateRoot}/`)) return `ReadWritePaths=${quotePath(path)}`;
  return `StateDirectory=${quotePath(relative(stateRoot, path))}\nStateDirectoryMode=0700`;
}

function service({ program, config, stateDir }: UnitOptions): string {
  const named = [
    ...(config === null ? [] : ['--config', config]),
    ...(stateDir === null ? [] : ['--state-dir', stateDir]),
  ];
  const [node = '', ...script] = program;
  // SIGUSR1 would open a debugger until the program handles the signal.
  const started = script.length === 0 ? program : [node, '--disable-sigusr1', ...script];
  const run = (...command: readonly string[]): string =>
    [...started, ...command, ...named].map(quote).join(' ');
  return `Type=notify
# Node has no Unix datagram sockets, so systemd-notify, a separate process, notifies systemd.
NotifyAccess=all
ExecStart=${run('serve')}
# A signal cannot be answered: this lets systemctl reload say that a configuration is invalid.
ExecReload=${run('config', 'check')}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=2s
# Restarting does not help when the configuration is invalid.
RestartPreventExitStatus=78
# A new version may migrate a large store at its first start. A migration that is stopped starts again from the beginning.
TimeoutStartSec=infinity
TimeoutStopSec=20s
# Saves memory: garbage is collected sooner, threads share memory arenas, and freed memory is returned to the system.
Environment=NODE_ENV=production NODE_OPTIONS=--max-semi-space-size=4 MALLOC_ARENA_MAX=2 MALLOC_TRIM_THRESHOLD_=131072`;
}

/** Quotes a word of a command, where systemd also expands `$`. */
function quote(word: string): string {
  return quotePath(word.replaceAll('$', '$$$$'));
}

/** Quotes a word if systemd needs it (systemd.syntax(7)), and doubles `%`, which systemd expands. */
function quotePath(word: string): string {
  const text = word.replaceAll('%', '%%');
  return /^[\w./:@%$=+-]+$/.test(text) ? text : `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}

/** Whether the unit reads files in a home directory. */
function needsHome({ program, config }: UnitOptions): boolean {
  const files = config === null ? program : [...program, config];
  return files.some((path) => isWithin(path, homes));
}
