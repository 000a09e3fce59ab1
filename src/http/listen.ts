import { once } from 'node:events';
import { chmodSync, chownSync, lstatSync, mkdirSync, unlinkSync } from 'node:fs';
import { connect, createServer, type ListenOptions, type Server } from 'node:net';
import { dirname } from 'node:path';
import { umask } from 'node:process';
import { isTlsServer } from './entry/connections.ts';

/** What this file uses of a Fastify server. The declarations of the package must not need Fastify. */
type HttpServer = { readonly server: Server; ready(): PromiseLike<unknown> };

/** Why a listener could not be opened. */
export type ListenFault =
  /** Another program listens there. */
  | 'in_use'
  /** Linux allows 107 bytes for the path of a socket. */
  | 'path_too_long'
  /** Another kind of file is at the socket's path. */
  | 'not_a_socket'
  /** The system refuses; `cause` says why. */
  | 'refused';

export class ListenError extends Error {
  readonly fault: ListenFault;
  /** The path of the socket in question; null: another listener, or it does not matter. */
  readonly socket: string | null;
  constructor(fault: ListenFault, message: string, cause?: unknown, socket: string | null = null) {
    super(message, { cause });
    this.socket = socket;
    this.name = 'ListenError';
    this.fault = fault;
  }
}

/** Listens on TCP and returns the address: `http://127.0.0.1:8787`, or `https://…`. Port 0 picks a free port. */
export async function listenTcp(
  server: HttpServer,
  { host, port }: { host: string; port: number },
): Promise<string> {
  await server.ready();
  const shown = host.includes(':') ? `[${host}]` : host;
  await listening(server.server, `${shown}:${port}`, () => server.server.listen({ host, port }));
  const address = server.server.address();
  const chosen = typeof address === 'object' && address !== null ? address.port : port;
  const scheme = isTlsServer(server.server) ? 'https' : 'http';
  return `${scheme}://${shown}:${chosen}`;
}

/** Shows new callers another certificate (PEM); connections that are open go on. */
export function changeCertificate(server: HttpServer, { chain, key }: { chain: string; key: string }): void {
  const tls: Server = server.server;
  if (isTlsServer(tls)) tls.setSecureContext({ cert: chain, key });
}

const longestPathBytes = 107;
const ownerOnly = 0o600;
const sameOwner = -1;

/** Where to listen: permission bits, and the id of the owning group (null: the process's own). */
export type SocketPlace = { path: string; mode: number; group?: number | null };

/** Listens on a Unix socket; replaces a stale one, never a live one. */
export async function listenSocket(server: HttpServer, place: SocketPlace): Promise<void> {
  checkLength(place.path);
  await server.ready();
  await bindSocket(server.server, place);
}

/**
 * Listens again where the file of a socket was removed: gives what takes connections there for the same server. The
 * server itself still listens on the file that has no name any more.
 */
export async function reopenSocket({ server }: HttpServer, place: SocketPlace): Promise<Server> {
  const reopened = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    server.emit('connection', socket);
  });
  await bindSocket(reopened, place);
  return reopened;
}

function checkLength(path: string): void {
  if (Buffer.byteLength(path) > longestPathBytes) {
    throw new ListenError('path_too_long', `${path}: a socket's path has at most ${longestPathBytes} bytes`);
  }
}

async function bindSocket(server: Server, { path, mode, group = null }: SocketPlace): Promise<void> {
  makeDirectory(path);
  await removeStale(path);
  await listening(server, path, () => listenPrivately(server, { path }));
  // Before the mode is widened: it must not open the socket to another group even for a moment.
  if (group !== null) changeGroup(path, group);
  if (mode !== ownerOnly) chmodSync(path, mode);
}

function changeGroup(path: string, group: number): void {
  try {
    chownSync(path, sameOwner, group);
  } catch (error) {
    throw new ListenError('refused', `cannot give ${path} to group ${group}: ${messageOf(error)}`, error);
  }
}

/** Uses the umask, since the socket exists from `bind` on and chmod would be too late. */
function listenPrivately(server: Server, options: ListenOptions): void {
  const before = umask(0o177);
  try {
    server.listen(options);
  } finally {
    umask(before);
  }
}

async function listening(server: Server, place: string, listen: () => void): Promise<void> {
  const opened = once(server, 'listening');
  try {
    listen();
    await opened;
  } catch (error) {
    if (errorCode(error) === 'EADDRINUSE') throw inUse(place, error);
    throw new ListenError('refused', `cannot listen on ${place}: ${messageOf(error)}`, error, place);
  }
}

function makeDirectory(path: string): void {
  try {
    // Not `recursive`: that never returns where nothing can be made, as under /proc (Node 26).
    mkdirSync(dirname(path), { mode: 0o700 });
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return;
    throw new ListenError(
      'refused',
      `cannot make the directory of ${path}: ${messageOf(error)}`,
      error,
      path,
    );
  }
}

async function removeStale(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isSocket()) throw new ListenError('not_a_socket', `${path} is there and is not a socket`);
  const probe = connect(path);
  try {
    await once(probe, 'connect');
  } catch (error) {
    if (errorCode(error) !== 'ECONNREFUSED') {
      const what = `cannot tell whether ${path} is in use: ${messageOf(error)}`;
      throw new ListenError('refused', what, error, path);
    }
    unlinkSync(path);
    return;
  } finally {
    probe.destroy();
  }
  throw inUse(path);
}

function inUse(place: string, cause?: unknown): ListenError {
  return new ListenError('in_use', `another program listens on ${place}`, cause);
}

function errorCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
