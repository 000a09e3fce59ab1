import { readFileSync, unlinkSync, lstatSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Server } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Configuration } from '../config/configuration.ts';
import { isLoopback } from '../config/value/address.ts';
import { formatReason } from '../config/errors.ts';
import type { Principal } from '../domain/access/principal.ts';
import type { App, ServerSettings } from '../http/app.ts';
import { Proxies } from '../http/entry/client-address.ts';
import { Connections } from '../http/entry/connections.ts';
import { isPipe } from '../domain/socket-path.ts';
import { listenTcp, listenSocket, reopenSocket, type SocketPlace } from '../http/listen.ts';
import { buildListener, type Listener, type ServedApp } from '../http/server.ts';
import { socketPrincipal } from '../service/access/credential.ts';
import type { TlsSettings } from '../config/file/certificates.ts';
import { Certificate } from './certificate.ts';
import { groupNumber } from './system/process.ts';
import { identityOf, replaceFile } from '../store/sqlite/files/private-file.ts';
import { stateFiles } from '../store/sqlite/files/state-directory.ts';
import type { Log } from '../service/ports.ts';
import { socketAddress } from '../wire/proof.ts';

/** How long a closing listener waits for connections in the middle of a request, in ms. */
const lingerMs = 500;

/** Where this process listens: `http://127.0.0.1:8787` or `https://…`, and the paths of its Unix sockets. */
export type Addresses = {
  tcp: string | null;
  /** The further addresses of `listen.tcp`. */
  otherTcp: readonly string[];
  socket: string | null;
  sockets: readonly string[];
  public: string | null;
};

/** The open listeners of a process. */
export interface Listeners extends AsyncDisposable {
  readonly addresses: Addresses;
  /** When the certificate expires, in epoch ms; null: TCP is off or without TLS. */
  certificateEnd(): number | null;
  /** Loads the certificate from its files again. Returns whether it changed. */
  renewCertificate(tls: TlsSettings | null): boolean;
  /** The paths of sockets to which connections fail, because their files were removed. */
  lost(): readonly string[];
  /** Checks that the sockets and `listen.json` exist, and creates them again. Never rejects. */
  check(): Promise<void>;
  /** Resolves when all requests in flight have been answered, or after `limitMs`. */
  answered(limitMs: number): Promise<void>;
}

/** Opens the configured listeners, and writes their addresses and the instance id to `listen.json`. Opens all or none. */
export async function openListeners(
  { listen, limits, stateDir }: Configuration,
  app: ServedApp,
  prepare: (server: FastifyInstance) => void,
): Promise<Listeners> {
  await using opening = new AsyncDisposableStack();
  const connections: Connections[] = [];
  const certificate = listen.tls === null ? null : new Certificate(listen.tls, app.log);
  const sockets = new UnixSockets(app.log);
  const open: Open = (settings) => {
    const ofListener = new Connections(settings.limits?.connections ?? limits.connections);
    connections.push(ofListener);
    const defaults = {
      ...listen,
      listener: 'tcp',
      limits,
      tls: null,
      principal: null,
      servesPages: false,
      public: undefined,
    } as const;
    const server = buildListener(app, { ...defaults, ...settings }, ofListener, prepare);
    opening.defer(() => close(server, ofListener));
    return server;
  };
  const servesPages = listen.tcp.every(({ host }) => isLoopback(host));
  const ofTcp = { tls: certificate?.identity ?? null, servesPages };
  const { servers, urls } = await listenOnTcp(listen, () => open(ofTcp));
  await listenOnSockets(listen, app, sockets, open);
  const publicAddress = await listenPublicly(listen.public, { app, limits, open });
  const addresses = addressesOf(listen, urls, publicAddress);
  // Closed before the servers: a connection to a socket that was created again belongs to its server.
  opening.use(sockets);
  const file = join(stateDir, stateFiles.addresses);
  // Not read again: a copy may take the place of a directory that was moved away.
  const directory = identityOf(stateDir);
  const listenJson = (): string => formatListenJson({ ...addresses, directory }, certificate, app);
  const writeListenJson = (): void => replaceFile(file, listenJson());
  writeListenJson();
  opening.defer(() => removeIfThere(file));
  const opened = opening.move();
  return {
    addresses,
    certificateEnd: () => certificate?.notAfter ?? null,
    lost: () => sockets.lost,
    check: () =>
      sockets.check(() => {
        if (readIfThere(file) !== listenJson()) logFailureOf(writeListenJson, app);
      }),
    renewCertificate: (tls) => {
      if (certificate === null || tls === null) return false;
      const isChanged = certificate.renew(tls, servers);
      logFailureOf(writeListenJson, app);
      return isChanged;
    },
    answered: (limitMs) => withTimeout(Promise.all(connections.map((each) => each.answered())), limitMs),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

function addressesOf(
  { socket, sockets }: Configuration['listen'],
  urls: readonly string[],
  publicAddress: string | null,
): Addresses {
  const [tcp = null, ...otherTcp] = urls;
  return { tcp, otherTcp, socket, sockets: sockets.map(({ path }) => path), public: publicAddress };
}

/** The text of `listen.json`. */
function formatListenJson(
  { tcp, socket, directory }: Pick<Addresses, 'tcp' | 'socket'> & { directory: string },
  certificate: Certificate | null,
  { instance }: App,
): string {
  // Commands trust this certificate and no other.
  const presented = certificate === null ? {} : { certificate: certificate.identity.leaf.toString() };
  return `${JSON.stringify({ tcp, socket, directory, ...presented, instance })}\n`;
}

/** The id of a product that the configuration names by its key. */
function idOf({ products }: App, productKey: string | null): string | null {
  return productKey === null ? null : (products?.idOf(productKey) ?? productKey);
}

type Open = (settings: Partial<ServerSettings>) => Listener;

/** Opens a listener on each address of `listen.tcp`. */
async function listenOnTcp(
  { tcp }: Configuration['listen'],
  open: () => Listener,
): Promise<{ servers: readonly Listener[]; urls: readonly string[] }> {
  const servers: Listener[] = [];
  const urls: string[] = [];
  for (const address of tcp) {
    const server = open();
    servers.push(server);
    urls.push(await listenTcp(server, address));
  }
  return { servers, urls };
}

/** Opens the listener for the devices of customers, and returns its address; null if there is none. */
async function listenPublicly(
  settings: Configuration['listen']['public'],
  { app, limits, open }: { app: App; limits: Configuration['limits']; open: Open },
): Promise<string | null> {
  if (settings === null) return null;
  const { address, proxies, connections } = settings;
  const issuerHost = (): string | null => app.publicHost?.() ?? null;
  const server = open({
    limits: { ...limits, connections },
    allowedOrigins: [],
    public: { proxies: new Proxies(proxies), issuerHost },
  });
  return await listenTcp(server, address);
}

async function listenOnSockets(
  { socket, socketMode, sockets }: Configuration['listen'],
  app: App,
  unixSockets: UnixSockets,
  open: Open,
): Promise<void> {
  const listenOn = async (place: SocketPlace, principal: Principal | null): Promise<void> => {
    let address = '';
    await unixSockets.listen(open({ listener: 'socket', principal, socketAddress: () => address }), place);
    // Now and not later: another user may change where a link leads.
    address = socketAddress(place.path);
  };
  if (socket !== null) await listenOn({ path: socket, mode: socketMode }, null);
  for (const { path, mode, group, grant } of sockets) {
    const place = { path, mode, group: group === null ? null : groupNumber(group) };
    const principal =
      grant === null ? null : socketPrincipal(path, { ...grant, product: idOf(app, grant.product) });
    await listenOn(place, principal);
  }
}

function logFailureOf(writeListenJson: () => void, { log }: App): void {
  try {
    writeListenJson();
  } catch (error) {
    log.error(
      { error: formatReason(error) },
      'listen.json cannot be written: commands cannot find this process',
    );
  }
}

function readIfThere(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

/** If the file cannot be removed, it stays with outdated addresses, and the rest is closed nevertheless. */
function removeIfThere(file: string): void {
  try {
    unlinkSync(file);
  } catch {
    // The directory was moved or removed, or the disk accepts no writes.
  }
}

async function close(server: Listener, connections: Connections): Promise<void> {
  // After a server closes, Node no longer ends requests that do not arrive in time.
  const cut = setTimeout(() => connections.endAll(), lingerMs);
  await server.close();
  clearTimeout(cut);
  // The server does not wait for connections to a socket that was created again.
  connections.endAll();
}

/** Waits for a promise, but not longer than `limitMs`. */
async function withTimeout(awaited: Promise<unknown>, limitMs: number): Promise<void> {
  const ended = new AbortController();
  const timeout = sleep(limitMs, undefined, { signal: ended.signal }).catch(() => undefined);
  await Promise.race([awaited, timeout]);
  ended.abort();
}

type OpenSocket = { server: Listener; place: SocketPlace; file: string | null };

/** The Unix sockets of this process. Creates the file of a socket again after it was removed. */
class UnixSockets implements AsyncDisposable {
  readonly #log: Log;
  readonly #sockets: OpenSocket[] = [];
  readonly #reopened: Server[] = [];
  readonly #lost = new Set<string>();
  #checked: Promise<void> = Promise.resolve();
  #isClosing = false;

  constructor(log: Log) {
    this.#log = log;
  }

  async listen(server: Listener, place: SocketPlace): Promise<void> {
    await listenSocket(server, place);
    // No other program can remove a pipe.
    if (!isPipe(place.path)) this.#sockets.push({ server, place, file: fileAt(place.path) });
  }

  /** The paths of sockets to which connections fail. */
  get lost(): readonly string[] {
    return [...this.#lost];
  }

  /** Checks that each file is the one that was created, and creates missing files again; then calls `next`. */
  async check(next: () => void): Promise<void> {
    this.#checked = this.#checkAfter(this.#checked, next);
    await this.#checked;
  }

  async #checkAfter(before: Promise<void>, next: () => void): Promise<void> {
    await before;
    await this.#checkAll();
    if (!this.#isClosing) next();
  }

  async #checkAll(): Promise<void> {
    for (const socket of this.#sockets) {
      if (this.#isClosing) return;
      const { path } = socket.place;
      const found = fileAt(path);
      if (found !== null && found === socket.file) this.#lost.delete(path);
      else if (found === null) await this.#reopen(socket);
      else this.#report(path, 'another file is in its place');
    }
  }

  async #reopen(socket: OpenSocket): Promise<void> {
    const { server, place } = socket;
    try {
      this.#reopened.push(await reopenSocket(server, place));
      socket.file = fileAt(place.path);
      this.#lost.delete(place.path);
      this.#log.warn({ socket: place.path }, 'the file of a socket was removed: created again');
    } catch (error) {
      this.#report(place.path, formatReason(error));
    }
  }

  /** Logs a lost socket once, although it is checked repeatedly. */
  #report(path: string, error: string): void {
    if (this.#lost.has(path)) return;
    this.#lost.add(path);
    const hint = 'restore its directory, or restart this process';
    this.#log.error(
      { socket: path, error, hint },
      'the file of a socket was removed: connections to it fail',
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true;
    await this.#checked;
    for (const server of this.#reopened) server.close();
  }
}

/** Identifies the file at a path; null if there is none. A later file may have the same inode. */
function fileAt(path: string): string | null {
  try {
    const { dev, ino, birthtimeMs } = lstatSync(path);
    return [dev, ino, birthtimeMs].join();
  } catch {
    return null;
  }
}
