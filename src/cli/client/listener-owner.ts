import { readFileSync, statSync } from 'node:fs';
import { endianness } from 'node:os';
import { isLoopback } from '../../config/value/address.ts';
import { formatReason } from '../../config/errors.ts';

/** Why the token must not be sent to a socket; null if this user, root or one of `knownTo` owns it. */
export function distrustSocket(path: string, knownTo: readonly number[]): string | null {
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
export function distrustPort(url: URL, knownTo: readonly number[]): string | null {
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
