import { readFileSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Configuration } from '../config/configuration.ts';
import { formatReason } from '../config/errors.ts';
import type { Principal } from '../domain/access/principal.ts';
import type { App, ServerSettings } from '../http/app.ts';
import { Connections } from '../http/entry/connections.ts';
import { listenTcp } from '../http/listen.ts';
import { buildServer } from '../http/server.ts';
import { socketPrincipal } from '../service/access/credential.ts';
import type { TlsSettings } from '../config/file/certificates.ts';
import { UnixSockets, groupNumber } from './unix-sockets.ts';
import { Certificate } from './certificate.ts';
import { replaceFile } from '../store/sqlite/files/private-file.ts';
import { stateFiles } from '../store/sqlite/files/state-directory.ts';

/** How long a closing listener waits for connections in the middle of a request, in ms. */
const lingerMs = 500;

/** Where this process listens: `http://127.0.0.1:8787` or `https://…`, and the paths of its Unix sockets. */
export type Addresses = { tcp: string | null; socket: string | null; sockets: readonly string[] };

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
  app: App,
  prepare: (server: FastifyInstance) => void,
): Promise<Listeners> {
  await using opening = new AsyncDisposableStack();
  const connections: Connections[] = [];
  const certificate = listen.tls === null ? null : new Certificate(listen.tls, app.log);
  const sockets = new UnixSockets(app.log);
  const open: Open = (listener, principal = null) => {
    const tls = listener === 'tcp' ? (certificate?.identity ?? null) : null;
    const settings: ServerSettings = { ...listen, listener, limits, tls, principal };
    const ofListener = new Connections(limits.connections);
    connections.push(ofListener);
    const server = buildServer(app, settings, ofListener);
    prepare(server);
    opening.defer(() => close(server, ofListener));
    return server;
  };
  const tcpServer = listen.tcp === null ? null : open('tcp');
  const tcp = tcpServer === null || listen.tcp === null ? null : await listenTcp(tcpServer, listen.tcp);
  await listenOnSockets(listen, app, sockets, open);
  const addresses = { tcp, socket: listen.socket };
  // Closed before the servers: a connection to a socket that was created again belongs to its server.
  opening.use(sockets);
  const file = join(stateDir, stateFiles.addresses);
  const listenJson = (): string => {
    // Commands trust this certificate and no other.
    const presented = certificate === null ? {} : { certificate: certificate.identity.leaf.toString() };
    return `${JSON.stringify({ ...addresses, ...presented, instance: app.instance })}\n`;
  };
  const writeListenJson = (): void => replaceFile(file, listenJson());
  writeListenJson();
  opening.defer(() => {
    removeIfThere(file);
  });
  const opened = opening.move();
  return {
    addresses: { ...addresses, sockets: listen.sockets.map(({ path }) => path) },
    certificateEnd: () => certificate?.notAfter ?? null,
    lost: () => sockets.lost,
    check: () =>
      sockets.check(() => {
        if (readIfThere(file) !== listenJson()) logFailureOf(writeListenJson, app);
      }),
    renewCertificate: (tls) => {
      if (certificate === null || tcpServer === null || tls === null) return false;
      const isChanged = certificate.renew(tls, tcpServer);
      logFailureOf(writeListenJson, app);
      return isChanged;
    },
    answered: (limitMs) => withTimeout(Promise.all(connections.map((each) => each.answered())), limitMs),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** The id of a product that the configuration names by its key. */
function idOf({ products }: App, productKey: string | null): string | null {
  return productKey === null ? null : (products?.idOf(productKey) ?? productKey);
}

type Open = (listener: 'tcp' | 'socket', principal?: Principal | null) => FastifyInstance;

async function listenOnSockets(
  { socket, socketMode, sockets }: Configuration['listen'],
  app: App,
  unixSockets: UnixSockets,
  open: Open,
): Promise<void> {
  if (socket !== null) await unixSockets.listen(open('socket'), { path: socket, mode: socketMode });
  for (const { path, mode, group, grant } of sockets) {
    const place = { path, mode, group: group === null ? null : groupNumber(group) };
    const principal =
      grant === null ? null : socketPrincipal(path, { ...grant, product: idOf(app, grant.product) });
    await unixSockets.listen(open('socket', principal), place);
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

async function close(server: FastifyInstance, connections: Connections): Promise<void> {
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
