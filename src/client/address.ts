import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { ConfigurationError } from './error.ts';
import { member } from './license.ts';

/** Where an agent may be reached; `agent`: the same for the addresses of one and the same. */
export type Address = { readonly agent: string } & (SocketAddress | TcpAddress);

type SocketAddress = { readonly kind: 'socket'; readonly path: string };
type TcpAddress = {
  readonly kind: 'tcp';
  readonly url: URL;
  /** PEM: the only one that is trusted there; null: whatever Node trusts. */
  readonly certificate: string | null;
  /** The socket of the same agent; null: it is not known to have one. */
  readonly socket: string | null;
};

/** Where to look for the agent; without any of these it is found by the environment and its default places. */
export interface AddressOptions {
  /** `http://127.0.0.1:8787`, `https://…`, or `unix:/path/of/the.sock`; default: `LATCHKEY_URL`. */
  readonly url?: string | undefined;
  /** The agent's `state_dir`, whose `listen.json` tells its addresses; default: `LATCHKEY_STATE_DIR`. */
  readonly stateDir?: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The addresses to try, the first one first. They are looked up anew when none answers: a restart may change them. */
export function findAddresses(options: AddressOptions, environment: Environment): readonly Address[] {
  const url = namedUrl(options, environment);
  if (url !== undefined) return [{ agent: url, ...parseAddress(url) }];
  const stateDir = options.stateDir ?? filled(environment['LATCHKEY_STATE_DIR']);
  if (stateDir !== undefined) {
    return [...readListenFile(stateDir), socketIn(stateDir)];
  }
  const stateDirs = defaultStateDirs(environment);
  return [...stateDirs.flatMap(readListenFile), ...defaultSockets(environment, stateDirs)];
}

/** Whether the program itself, or its environment, names a socket to ask. */
export function isSocketNamed(options: AddressOptions, environment: Environment): boolean {
  return namedUrl(options, environment)?.startsWith('unix:') === true;
}

function namedUrl({ url, stateDir }: AddressOptions, environment: Environment): string | undefined {
  return url ?? (stateDir === undefined ? filled(environment['LATCHKEY_URL']) : undefined);
}

const socketName = 'latchkey.sock';

/** That of the agent whose directory it is. */
function socketIn(directory: string): Address {
  return { agent: directory, kind: 'socket', path: join(directory, socketName) };
}

function parseAddress(text: string): SocketAddress | TcpAddress {
  if (/^unix:./.test(text)) return { kind: 'socket', path: text.slice('unix:'.length) };
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new ConfigurationError(`The url of the agent must be http://…, https://… or unix:/…, not ${text}`);
  }
  return { kind: 'tcp', url, certificate: null, socket: null };
}

/** What a running agent wrote into its state directory; a file that others could have written says nothing. */
function readListenFile(stateDir: string): Address[] {
  const file = join(stateDir, 'listen.json');
  try {
    if (process.platform !== 'win32' && (statSync(file).mode & 0o022) !== 0) return [];
    const listen: unknown = JSON.parse(readFileSync(file, 'utf8'));
    const [socket, tcp, certificate] = ['socket', 'tcp', 'certificate'].map((name) => member(listen, name));
    const found: Address[] = [];
    const path = textOrNull(socket);
    if (path !== null) found.push({ agent: stateDir, kind: 'socket', path });
    if (typeof tcp === 'string' && URL.canParse(tcp)) {
      const told = { certificate: textOrNull(certificate), socket: path };
      found.push({ agent: stateDir, kind: 'tcp', url: new URL(tcp), ...told });
    }
    return found;
  } catch {
    // It does not run, or not for this user.
    return [];
  }
}

/** This user's, then the system's (src/config/README.md, state_dir). */
function defaultStateDirs(environment: Environment): readonly string[] {
  const state = absolute(environment['XDG_STATE_HOME']) ?? stateAtHome();
  return [...(state === null ? [] : [join(state, 'latchkey')]), '/var/lib/latchkey'];
}

/** Null: the system knows no home directory of this user. */
function stateAtHome(): string | null {
  try {
    return join(homedir(), '.local', 'state');
  } catch {
    return null;
  }
}

function defaultSockets(environment: Environment, stateDirs: readonly string[]): Address[] {
  if (process.platform === 'win32') {
    const path = String.raw`\\.\pipe\latchkey`;
    return [{ agent: path, kind: 'socket', path }];
  }
  const runtime = absolute(environment['XDG_RUNTIME_DIR']);
  const directories = [
    ...(runtime === undefined ? [] : [join(runtime, 'latchkey')]),
    ...stateDirs.slice(0, 1),
    '/run/latchkey',
  ];
  return directories.map(socketIn);
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

function absolute(path: string | undefined): string | undefined {
  return path !== undefined && isAbsolute(path) ? path : undefined;
}

/** An empty variable counts as none. */
export function filled(text: string | undefined): string | undefined {
  return text === undefined || text === '' ? undefined : text;
}
