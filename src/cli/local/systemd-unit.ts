import { hash } from 'node:crypto';

/** For whom the service runs: the machine, under a user of its own, or the user who installs it. */
export type UnitScope = 'system' | 'user';

/** What a unit is made of. */
export interface UnitOptions {
  readonly scope: UnitScope;
  /** The command of the program, each word by itself. */
  readonly program: readonly string[];
  /** The configuration file; null: the default places are looked at. */
  readonly config: string | null;
}

/** Writes the systemd unit; its first line has a hash of the rest, so that an edited unit is noticed. */
export function formatUnit(options: UnitOptions): string {
  const body = options.scope === 'system' ? systemUnit(options) : userUnit(options);
  return `${markOf(body)}\n${body}`;
}

/** Whether nobody edited a unit since some version of this program wrote it. */
export function isUnchanged(unit: string): boolean {
  const end = unit.indexOf('\n');
  return unit.slice(0, end) === markOf(unit.slice(end + 1));
}

function markOf(body: string): string {
  return `# Written by: latchkey service install (${hash('sha256', body, 'hex').slice(0, 16)}). Change it by: systemctl edit latchkey`;
}

function systemUnit(options: UnitOptions): string {
  return `[Unit]
Description=Latchkey, license verification beside your software
After=network-online.target nss-lookup.target
Wants=network-online.target

[Service]
${service(options)}
User=latchkey
Group=latchkey
StateDirectory=latchkey
StateDirectoryMode=0700
RuntimeDirectory=latchkey
RuntimeDirectoryMode=0755
ConfigurationDirectory=latchkey
UMask=0077

# Nothing but its own directories can be written, and little of the machine is seen.
ProtectSystem=strict
ProtectHome=${isAtHome(options.program) ? 'read-only' : 'yes'}
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

/** A user's service manager cannot set up a sandbox; state and socket are at the user's default paths. */
function userUnit(options: UnitOptions): string {
  return `[Unit]
Description=Latchkey, license verification beside your software

[Service]
${service(options)}
NoNewPrivileges=yes
UMask=0077

[Install]
WantedBy=default.target
`;
}

function service({ program, config }: UnitOptions): string {
  const command = [...program, 'serve', ...(config === null ? [] : ['--config', config])];
  return `Type=notify
# Node has no datagram sockets: systemd-notify, another process, speaks for it.
NotifyAccess=all
ExecStart=${command.map(quote).join(' ')}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=2s
# A configuration that cannot be served does not get better by itself.
RestartPreventExitStatus=78
TimeoutStopSec=20s
Environment=NODE_ENV=production`;
}

/** Quotes a word where systemd needs it (systemd.syntax(7)); doubles `%` and `$`, which it would expand. */
function quote(word: string): string {
  const text = word.replaceAll('%', '%%').replaceAll('$', '$$$$');
  return /^[\w./:@%$=+-]+$/.test(text) ? text : `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}

function isAtHome(program: readonly string[]): boolean {
  return program.some((word) => /^\/(home|root|run\/user)\//.test(word));
}
