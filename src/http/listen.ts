import { once } from 'node:events';
import { chmodSync, chownSync, lstatSync, mkdirSync, unlinkSync } from 'node:fs';
import { connect, createServer, type ListenOptions, type Server } from 'node:net';
import { dirname } from 'node:path';
import { platform, umask } from 'node:process';
import { isPipe, maxSocketLength } from '../domain/socket-path.ts';
import { isTlsServer } from './entry/connections.ts';

/** A part of Fastify's server: the type declarations of the package must not need Fastify. */
type HttpServer = { readonly server: Server; ready?(): PromiseLike<unknown> };

/** The reason why a listener could not be opened. */
export type ListenErrorCode =
  /** Another program listens there. */
  | 'in_use'
  /** Linux allows 107 bytes for the path of a socket, and macOS 103. */
  | 'path_too_long'
  /** Another kind of file is at the socket's path. */
  | 'not_a_socket'
  /** The system refuses (`cause` says why), or a named pipe of Windows cannot have such a mode or group. */
  | 'refused';

export class ListenError extends Error {
  readonly code: ListenErrorCode;
  /** The path of the socket that could not be opened; null: the error is about TCP or has another reason. */
  readonly socket: string | null;
  constructor(code: ListenErrorCode, message: string, cause?: unknown, socket: string | null = null) {
    super(message, { cause });
    this.socket = socket;
    this.name = 'ListenError';
    this.code = code;
  }
}

/** Listens on TCP and returns the address: `http://127.0.0.1:8787`, or `https://…`. Port 0 picks a free port. */
export async function listenTcp(
  server: HttpServer,
  { host, port }: { host: string; port: number },
): Promise<string> {
  await server.ready?.();
  const urlHost = host.includes(':') ? `[${host}]` : host;
  await listening(server.server, `${urlHost}:${port}`, () => server.server.listen({ host, port }));
  const address = server.server.address();
  const chosenPort = typeof address === 'object' && address !== null ? address.port : port;
  const scheme = isTlsServer(server.server) ? 'https' : 'http';
  return `${scheme}://${urlHost}:${chosenPort}`;
}

/** Uses another certificate (PEM) for new connections; open connections continue. */
export function changeCertificate(server: HttpServer, { chain, key }: { chain: string; key: string }): void {
  const tls: Server = server.server;
  if (isTlsServer(tls)) tls.setSecureContext({ cert: chain, key });
}

const maxPathBytes = maxSocketLength(platform);
const ownerOnly = 0o600;
const everyone = 0o666;
const sameOwner = -1;

/**
 * The path of a Unix socket or named pipe, its permission bits, and the id of its group (null: the group of the
 * process). A pipe has mode 0600 (its creator and administrators) or 0666 (every user), and no group.
 */
export type SocketPlace = { path: string; mode: number; group?: number | null };

/** Listens on a Unix socket or named pipe; replaces a stale socket, never a live one. */
export async function listenSocket(server: HttpServer, place: SocketPlace): Promise<void> {
  if (isPipe(place.path)) checkPipe(place);
  else checkLength(place.path);
  await server.ready?.();
  await bindSocket(server.server, place);
}

/**
 * Listens again after the file of a socket was removed: returns a server that passes its connections to the first. The
 * first server still listens on the removed file.
 */
export async function reopenSocket({ server }: HttpServer, place: SocketPlace): Promise<Server> {
  const reopened = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    server.emit('connection', socket);
  });
  await bindSocket(reopened, place);
  return reopened;
}

function checkLength(path: string): void {
  if (Buffer.byteLength(path) > maxPathBytes) {
    throw new ListenError('path_too_long', `${path}: a socket's path has at most ${maxPathBytes} bytes`);
  }
}

async function bindSocket(server: Server, { path, mode, group = null }: SocketPlace): Promise<void> {
  if (isPipe(path)) {
    await bindPipe(server, path, mode);
    return;
  }
  makeDirectory(path);
  await removeStale(path);
  await listening(server, path, () => listenPrivately(server, { path }));
  // Change the group first: a wider mode must not open the socket to another group even for a moment.
  if (group !== null) changeGroup(path, group);
  if (mode !== ownerOnly) chmodSync(path, mode);
}

function checkPipe({ path, mode, group = null }: SocketPlace): void {
  if (group !== null) throw new ListenError('refused', `${path}: a named pipe has no group`);
  if (mode === ownerOnly || mode === everyone) return;
  const octal = mode.toString(8).padStart(4, '0');
  throw new ListenError(
    'refused',
    `${path}: a named pipe cannot have mode ${octal}: 0600 is for its creator and administrators, 0666 for every user`,
  );
}

/** The pipe disappears with its server: it is never stale. */
async function bindPipe(server: Server, path: string, mode: number): Promise<void> {
  // Windows refuses a second server of a pipe. Wine does not.
  if (await isServed(path)) throw inUse(path);
  const isOpenToAll = mode === everyone;
  await listening(server, path, () =>
    server.listen({ path, readableAll: isOpenToAll, writableAll: isOpenToAll }),
  );
}

async function isServed(path: string): Promise<boolean> {
  const probe = connect(path);
  try {
    await once(probe, 'connect');
    return true;
  } catch (error) {
    // Another user's pipe refuses access.
    return ['EPERM', 'EACCES', 'EBUSY'].includes(String(errorCode(error)));
  } finally {
    probe.destroy();
  }
}

function changeGroup(path: string, group: number): void {
  try {
    chownSync(path, sameOwner, group);
  } catch (error) {
    throw new ListenError('refused', `cannot give ${path} to group ${group}: ${messageOf(error)}`, error);
  }
}

/** Uses the umask, because the socket exists from `bind` on: chmod would be too late. */
function listenPrivately(server: Server, options: ListenOptions): void {
  const before = umask(0o177);
  try {
    server.listen(options);
  } finally {
    umask(before);
  }
}

async function listening(server: Server, address: string, listen: () => void): Promise<void> {
  const opened = once(server, 'listening');
  try {
    listen();
    await opened;
  } catch (error) {
    if (errorCode(error) === 'EADDRINUSE') throw inUse(address, error);
    throw new ListenError('refused', `cannot listen on ${address}: ${messageOf(error)}`, error, address);
  }
}

function makeDirectory(path: string): void {
  try {
    // With `recursive`, Node 26 never returns if no directory can be created, for example under /proc.
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
  const file = lstatSync(path, { throwIfNoEntry: false });
  if (file === undefined) return;
  if (!file.isSocket()) throw new ListenError('not_a_socket', `${path} exists and is not a socket`);
  const probe = connect(path);
  try {
    await once(probe, 'connect');
  } catch (error) {
    if (errorCode(error) !== 'ECONNREFUSED') {
      const detail = `cannot find out whether ${path} is in use: ${messageOf(error)}`;
      throw new ListenError('refused', detail, error, path);
    }
    unlinkSync(path);
    return;
  } finally {
    probe.destroy();
  }
  throw inUse(path);
}

function inUse(address: string, cause?: unknown): ListenError {
  return new ListenError('in_use', `another program listens on ${address}`, cause);
}

function errorCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
