import { closeSync, fstatSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { endianness } from 'node:os';
import { z } from 'zod';
import { formatReason } from '../../config/errors.ts';
import { exitCode } from '../exit-code.ts';
import { isLoopback } from '../../config/value/address.ts';
import { identityOf, openOwnFile } from '../../store/sqlite/files/private-file.ts';

/** An address of the daemon. `certificate` (PEM): the only one that is trusted there; null for plain HTTP. */
export type Endpoint =
  | { readonly kind: 'socket'; readonly path: string }
  | { readonly kind: 'tcp'; readonly url: URL; readonly certificate: string | null };

/** The daemon of a state directory: its instance id and its addresses, the socket first. */
interface DaemonAddress {
  readonly instance: string;
  readonly endpoints: readonly Endpoint[];
}

/** `absent`: there is no file. `copied`: the file was written into another directory, whose copy this one is. */
type Missing = 'absent' | 'copied' | 'unreadable';

/** Where the daemon listens, or why that is not known. */
type AddressResult =
  | { readonly ok: true; readonly address: DaemonAddress }
  | { readonly ok: false; readonly missing: Missing; readonly lines: readonly string[] };

/** Advice for a daemon whose files or responses cannot be read. */
export const otherVersion: string =
  'the daemon may be running another version. After an upgrade, restart it.';

/** `listen.json`: the daemon writes it when it listens and removes it when it stops. */
const listenFile = z.object({
  tcp: z.string().nullable(),
  socket: z.string().nullable(),
  certificate: z.string().optional(),
  instance: z.string(),
  directory: z.string(),
});

/**
 * Reads where the daemon of a state directory listens.
 *
 * The configured address is not used: the daemon of another directory may listen there.
 */
export function readAddress(stateDir: string): AddressResult {
  const file = readStateFile(stateDir, 'listen.json');
  if (!file.ok) return file;
  const read = listenFile.safeParse(parse(file.text));
  if (!read.success) {
    const line = `latchkey: ${file.path} cannot be read: ${otherVersion}`;
    return { ok: false, missing: 'unreadable', lines: [line] };
  }
  const { tcp, socket, certificate = null, instance, directory } = read.data;
  if (directory !== identityOf(stateDir)) return { ok: false, missing: 'copied', lines: [] };
  const url = tcp === null ? null : toReachable(tcp);
  const endpoints: Endpoint[] = [];
  if (socket !== null) endpoints.push({ kind: 'socket', path: socket });
  if (url !== null) endpoints.push({ kind: 'tcp', url, certificate });
  return { ok: true, address: { instance, endpoints } };
}

/** The instance id of the daemon that listens for a state directory, or was killed; null if it is not known. */
export function instanceOf(stateDir: string): string | null {
  const read = readAddress(stateDir);
  return read.ok ? read.address.instance : null;
}

interface Trust {
  /** Users who can read the token anyway. */
  readonly knownTo: readonly number[];
  /** Whether the daemon must prove that it knows the token in `admin.token`. */
  readonly isProven: boolean;
}

/**
 * Why the token must not be sent to the endpoint, or null.
 *
 * The owner of a socket is checked also if the daemon proves itself: a user who can rename the file of the socket could
 * listen at its path and forward to the daemon. A port is checked only without a proof.
 */
export function distrust(endpoint: Endpoint, { knownTo, isProven }: Trust): string | null {
  if (!isProven && process.getuid === undefined)
    return 'this system does not show which user listens there, so LATCHKEY_TOKEN needs the file admin.token too';
  if (endpoint.kind === 'socket') return distrustSocket(endpoint.path, knownTo);
  return isProven ? null : distrustPort(endpoint.url, knownTo);
}

export function formatEndpoint(endpoint: Endpoint): string {
  return endpoint.kind === 'socket' ? endpoint.path : endpoint.url.origin;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A daemon that listens on all addresses is called on the loopback address. */
function toReachable(address: string): URL | null {
  const url = URL.parse(address);
  if (url?.hostname === '0.0.0.0') url.hostname = '127.0.0.1';
  if (url?.hostname === '[::]') url.hostname = '[::1]';
  return url;
}

/** The text of a file and the user id of its owner, or why it cannot be read. */
type StateFile =
  | { readonly ok: true; readonly path: string; readonly text: string; readonly owner: number }
  | { readonly ok: false; readonly missing: Missing; readonly lines: readonly string[] };

const maxBytes = 64 * 1024;

/**
 * Reads a file that the daemon wrote into its state directory.
 *
 * The file must be a regular file of this user or of root. Root also reads a file of the directory's owner. Otherwise
 * another user could make root send the content of any file as a token.
 */
function readStateFile(stateDir: string, name: 'admin.token' | 'listen.json'): StateFile {
  const path = join(stateDir, name);
  let file: number;
  try {
    file = openOwnFile(path);
  } catch (error) {
    return explain(path, error);
  }
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) return refuse(path, 'it is not a regular file');
    if (stats.size > maxBytes) return refuse(path, `it is larger than ${maxBytes} bytes`);
    if (!trustedOwners(path).includes(stats.uid)) {
      return refuse(path, `it belongs to user ${stats.uid}, who is neither this user nor root`);
    }
    return { ok: true, path, text: readFileSync(file, 'utf8'), owner: stats.uid };
  } catch (error) {
    return explain(path, error);
  } finally {
    closeSync(file);
  }
}

function trustedOwners(path: string): readonly number[] {
  const user = process.getuid?.() ?? 0;
  return user === 0 ? [0, statSync(dirname(path)).uid] : [0, user];
}

function explain(path: string, error: unknown): StateFile {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOENT') return { ...refuse(path, formatReason(error)), missing: 'absent' };
  if (code === 'ELOOP') return refuse(path, 'it is a link');
  const advice = code === 'EACCES' ? ['Run this as the user that runs the daemon, or as root.'] : [];
  return refuse(path, formatReason(error), advice);
}

function refuse(path: string, reason: string, advice: readonly string[] = []): StateFile & { ok: false } {
  return { ok: false, missing: 'unreadable', lines: [`latchkey: cannot read ${path}: ${reason}`, ...advice] };
}

/** The token to send, and the token in `admin.token` with which the daemon proves itself; null if there is no file. */
export interface Credential {
  readonly token: string | null;
  readonly adminToken: string | null;
  /** Users who can read the token anyway. */
  readonly knownTo: readonly number[];
}

type Refused = { readonly ok: false; readonly code: number; readonly lines: readonly string[] };

/** The token to send: `LATCHKEY_TOKEN`, or else the admin token in the state directory. */
export function readToken(stateDir: string): ({ readonly ok: true } & Credential) | Refused {
  const variable = process.env['LATCHKEY_TOKEN'] || undefined;
  const admin = readAdminToken(stateDir);
  if (variable === undefined) return admin;
  const token = checkToken(variable, 'LATCHKEY_TOKEN');
  if (!token.ok) return token;
  return admin.ok ? { ...admin, ...token } : { ...token, adminToken: null, knownTo: [] };
}

function readAdminToken(stateDir: string): ({ readonly ok: true } & Credential) | Refused {
  const file = readStateFile(stateDir, 'admin.token');
  if (!file.ok) return { ok: false, code: exitCode.failed, lines: file.lines };
  const read = checkToken(file.text, file.path);
  // The owner of the file can read the token anyway, so root may send it to a daemon that runs as that user.
  return read.ok ? { ...read, adminToken: read.token, knownTo: [file.owner] } : read;
}

function checkToken(text: string, source: string): { readonly ok: true; readonly token: string } | Refused {
  const token = text.trim();
  return /^[!-~]+$/.test(token)
    ? { ok: true, token }
    : { ok: false, code: exitCode.failed, lines: [`latchkey: there is no token in ${source}`] };
}

/** Why the token must not be sent to a socket; null if this user, root or one of `knownTo` owns it. */
function distrustSocket(path: string, knownTo: readonly number[]): string | null {
  const user = process.getuid?.();
  if (user === undefined) return null;
  try {
    return distrustUsers([statSync(path).uid], [user, ...knownTo]);
  } catch (error) {
    return formatReason(error);
  }
}

/**
 * Why the token must not be sent to a port; null if this user, root or one of `knownTo` listens on it.
 *
 * Only Linux shows which user listens on a port. On other systems the token is never sent to a port.
 */
function distrustPort(url: URL, knownTo: readonly number[]): string | null {
  const user = process.getuid?.();
  const listeners = user === undefined ? undefined : readListeners();
  if (user === undefined || listeners === undefined) {
    return 'this system does not show which user listens on a port: the token is sent only to a socket';
  }
  const users = listeners.filter((listener) => isReachedBy(url, listener)).map((listener) => listener.user);
  return users.length === 0 ? 'nothing is listening there' : distrustUsers(users, [user, ...knownTo]);
}

interface Listener {
  readonly host: string;
  readonly port: number;
  readonly user: number;
}

function distrustUsers(holders: readonly number[], trusted: readonly number[]): string | null {
  const stranger = holders.find((holder) => holder !== 0 && !trusted.includes(holder));
  return stranger === undefined
    ? null
    : `user ${stranger} listens there, who is neither this user nor root: the token is not sent`;
}

/** Whether a connection to the URL could reach this listener. A listener on all addresses is reachable on loopback. */
function isReachedBy({ protocol, hostname, port }: URL, listener: Listener): boolean {
  const host = toBare(hostname);
  if (listener.port !== Number(port || (protocol === 'https:' ? 443 : 80))) return false;
  return isLoopback(host)
    ? isLoopback(listener.host) || listener.host === '0.0.0.0' || listener.host === '::'
    : listener.host === host;
}

/** Reads the kernel's tables of TCP sockets (proc_net_tcp(5)); `undefined` if there are none. */
function readListeners(): readonly Listener[] | undefined {
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((path) => {
    try {
      return [readFileSync(path, 'utf8')];
    } catch {
      return [];
    }
  });
  if (tables.length === 0 || endianness() !== 'LE') return undefined;
  return tables.flatMap((table) => table.split('\n').slice(1)).flatMap(parseListener);
}

const listening = '0A';

function parseListener(line: string): readonly Listener[] {
  const [, local = '', , state, , , , user] = line.trim().split(/\s+/);
  const [address = '', port = ''] = local.split(':');
  if (state !== listening) return [];
  return [{ host: parseHexAddress(address), port: Number.parseInt(port, 16), user: Number(user) }];
}

/** Reads an address as the kernel writes it: groups of four bytes, each in reverse order. */
function parseHexAddress(hex: string): string {
  const bytes = Buffer.from(hex, 'hex').swap32();
  if (bytes.length === 4) return bytes.join('.');
  const groups = bytes.toString('hex').match(/.{4}/g) ?? [];
  return toBare(new URL(`http://[${groups.join(':')}]`).hostname);
}

function toBare(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}
