import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { posix, win32 } from 'node:path';
import { ConfigurationError } from './error.ts';
import { member } from './wire.ts';

/** An address of an agent. Addresses of the same agent have the same `agent`. */
export type Address = { readonly agent: string } & (SocketAddress | TcpAddress);

type SocketAddress = { readonly kind: 'socket'; readonly path: string };
type TcpAddress = {
  readonly kind: 'tcp';
  readonly url: URL;
  /** The only certificate to trust, as PEM. Null: every certificate that Node trusts. */
  readonly certificate: string | null;
  /** The socket of the same agent. Null: none is known. */
  readonly socket: string | null;
};

/** Where to look for the agent. Without these options, the environment and the default directories are searched. */
export interface AddressOptions {
  /**
   * `http://127.0.0.1:8787`, `https://…`, `unix:/path/of/the.sock`, or on Windows the named pipe `unix:\\.\pipe\NAME`.
   * Default: `LATCHKEY_URL`.
   */
  readonly url?: string | undefined;
  /** The agent's `state_dir`, whose `listen.json` has its addresses. Default: `LATCHKEY_STATE_DIR`. */
  readonly stateDir?: string | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Gives the addresses to try, in this order. Call it again if none of them answers: a restart may change them. */
export function findAddresses(
  options: AddressOptions,
  environment: Environment,
  platform: NodeJS.Platform = process.platform,
): readonly Address[] {
  const url = namedUrl(options, environment);
  if (url !== undefined) return [{ agent: url, ...parseAddress(url) }];
  const stateDir = options.stateDir ?? nonEmpty(environment['LATCHKEY_STATE_DIR']);
  if (stateDir !== undefined) {
    return [...readListenFile(stateDir, platform), socketIn(stateDir, platform)];
  }
  const stateDirs = defaultStateDirs(environment, platform);
  return [
    ...stateDirs.flatMap((each) => readListenFile(each, platform)),
    ...defaultSockets(environment, stateDirs, platform),
  ];
}

/** Whether the program or its environment names a Unix socket. */
export function isSocketNamed(options: AddressOptions, environment: Environment): boolean {
  return namedUrl(options, environment)?.startsWith('unix:') === true;
}

function namedUrl({ url, stateDir }: AddressOptions, environment: Environment): string | undefined {
  return url ?? (stateDir === undefined ? nonEmpty(environment['LATCHKEY_URL']) : undefined);
}

const socketName = 'latchkey.sock';

function socketIn(directory: string, platform: NodeJS.Platform): Address {
  const path = platform === 'win32' ? pipeOf(directory) : posix.join(directory, socketName);
  return { agent: directory, kind: 'socket', path };
}

/** The named pipe of a state directory. `config/defaults.ts` has the same rule. */
export function pipeOf(stateDir: string): string {
  const path = win32.resolve(stateDir.replace(/^\\\\\?\\/, '')).toLowerCase();
  const digest = createHash('sha256').update(path).digest('hex');
  return String.raw`\\.\pipe\latchkey-${digest.slice(0, 32)}`;
}

function parseAddress(text: string): SocketAddress | TcpAddress {
  if (/^unix:./.test(text)) return { kind: 'socket', path: text.slice('unix:'.length) };
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new ConfigurationError(`The url of the agent must be http://…, https://… or unix:/…, not ${text}`);
  }
  return { kind: 'tcp', url, certificate: null, socket: null };
}

/** Reads the addresses that a running agent wrote. A file that other users can write to is ignored. */
function readListenFile(stateDir: string, platform: NodeJS.Platform): Address[] {
  const file = (platform === 'win32' ? win32 : posix).join(stateDir, 'listen.json');
  try {
    if (platform !== 'win32' && (statSync(file).mode & 0o022) !== 0) return [];
    const listen: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (isOfAnother(stateDir, member(listen, 'directory'))) return [];
    const [socket, tcp, certificate] = ['socket', 'tcp', 'certificate'].map((name) => member(listen, name));
    const addresses: Address[] = [];
    const path = textOrNull(socket);
    if (path !== null) addresses.push({ agent: stateDir, kind: 'socket', path });
    if (typeof tcp === 'string' && URL.canParse(tcp)) {
      const trust = { certificate: textOrNull(certificate), socket: path };
      addresses.push({ agent: stateDir, kind: 'tcp', url: new URL(tcp), ...trust });
    }
    return addresses;
  } catch {
    // No agent runs there, or this user may not read the file.
    return [];
  }
}

/** Whether the directory is a copy of the one that an agent has written the file into. */
function isOfAnother(stateDir: string, directory: unknown): boolean {
  // An older agent does not write it.
  if (directory === undefined) return false;
  const { dev, ino } = statSync(stateDir, { bigint: true });
  return directory !== `${dev}:${ino}`;
}

/**
 * The state directory of this user if there is one, then the system's (src/config/README.md, state_dir). On Windows, every
 * user can create the system's folder: a program has to name it.
 */
export function defaultStateDirs(environment: Environment, platform: NodeJS.Platform): readonly string[] {
  if (platform === 'win32') {
    const local = windowsFolder(environment, 'LOCALAPPDATA') ?? inHome(win32.join, 'AppData', 'Local');
    return local === null ? [] : [win32.join(local, 'Latchkey')];
  }
  if (platform === 'darwin') {
    const user = inHome(posix.join, 'Library', 'Application Support', 'Latchkey');
    return [...(user === null ? [] : [user]), '/Library/Application Support/Latchkey'];
  }
  const state = absolute(environment['XDG_STATE_HOME']) ?? inHome(posix.join, '.local', 'state');
  return [...(state === null ? [] : [posix.join(state, 'latchkey')]), '/var/lib/latchkey'];
}

/** Null: the system knows no home directory of this user. */
function inHome(join: typeof posix.join, ...steps: readonly string[]): string | null {
  try {
    return join(homedir(), ...steps);
  } catch {
    return null;
  }
}

/** Windows compares the names of variables without case. */
function windowsFolder(environment: Environment, name: string): string | undefined {
  const entries = Object.entries(environment);
  const path = entries.find(([each]) => each.toLowerCase() === name.toLowerCase())?.[1];
  return path !== undefined && win32.isAbsolute(path) ? path : undefined;
}

function defaultSockets(
  environment: Environment,
  stateDirs: readonly string[],
  platform: NodeJS.Platform,
): Address[] {
  // Every user of Windows can create a pipe with any name: only `listen.json` says that it is the agent's.
  if (platform === 'win32') return [];
  if (platform === 'darwin') return stateDirs.map((each) => socketIn(each, platform));
  const runtime = absolute(environment['XDG_RUNTIME_DIR']);
  const directories = [
    ...(runtime === undefined ? [] : [posix.join(runtime, 'latchkey')]),
    ...stateDirs.slice(0, 1),
    '/run/latchkey',
  ];
  return directories.map((each) => socketIn(each, platform));
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

function absolute(path: string | undefined): string | undefined {
  return path !== undefined && posix.isAbsolute(path) ? path : undefined;
}

/** Treats an empty variable as unset. */
export function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text === '' ? undefined : text;
}
