import { unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Configuration } from '../config/configuration.ts';
import { formatReason } from '../config/fault/fault.ts';
import type { Principal } from '../domain/access/principal.ts';
import type { App, ServerSettings } from '../http/app.ts';
import { Connections } from '../http/entry/connections.ts';
import { listenSocket, listenTcp } from '../http/listen.ts';
import { buildServer } from '../http/server.ts';
import { socketPrincipal } from '../service/access/credential.ts';
import type { TlsSettings } from '../config/file/tls-files.ts';
import { Certificate } from './certificate.ts';
import { groupNumber } from './system/unix-group.ts';
import { replaceFile } from '../store/sqlite/files/private-file.ts';
import { stateFiles } from '../store/sqlite/files/state-directory.ts';

/** How long a listener that closes leaves connections that are in the middle of something, in ms. */
const lingerMs = 500;

/** Where this process listens: `http://127.0.0.1:8787` or `https://…`, and the paths of the Unix socket and of further ones. */
export type Addresses = { tcp: string | null; socket: string | null; sockets: readonly string[] };

/** The open listeners of a process. */
export interface Listeners extends AsyncDisposable {
  readonly addresses: Addresses;
  /** When the certificate in force ends, in epoch ms; null: TCP speaks plain HTTP, or is switched off. */
  certificateEnd(): number | null;
  /** Puts the certificate in force that is now in the files; says whether it is another one. */
  renewCertificate(tls: TlsSettings | null): boolean;
  /** Resolves when all requests that are under way now have been answered, or after `limitMs`. */
  answered(limitMs: number): Promise<void>;
}

/** Opens what is configured and writes where, and which instance this is, to `listen.json`; opens nothing if one of them fails. */
export async function openListeners(
  { listen, limits, stateDir }: Configuration,
  app: App,
  prepare: (server: FastifyInstance) => void,
): Promise<Listeners> {
  await using opening = new AsyncDisposableStack();
  const connections: Connections[] = [];
  const certificate = listen.tls === null ? null : new Certificate(listen.tls, app.log);
  const open = (listener: 'tcp' | 'socket', principal: Principal | null = null): FastifyInstance => {
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
  if (listen.socket !== null) {
    await listenSocket(open('socket'), { path: listen.socket, mode: listen.socketMode });
  }
  for (const { path, mode, group, grant } of listen.sockets) {
    const place = { path, mode, group: group === null ? null : groupNumber(group) };
    const principal =
      grant === null ? null : socketPrincipal(path, { ...grant, product: idOf(app, grant.product) });
    await listenSocket(open('socket', principal), place);
  }
  const found = { tcp, socket: listen.socket };
  const file = join(stateDir, stateFiles.addresses);
  const announce = (): void => {
    // Commands trust this certificate and no other.
    const shown = certificate === null ? {} : { certificate: certificate.identity.leaf.toString() };
    replaceFile(file, `${JSON.stringify({ ...found, ...shown, instance: app.instance })}\n`);
  };
  announce();
  opening.defer(() => {
    removeIfThere(file);
  });
  const opened = opening.move();
  return {
    addresses: { ...found, sockets: listen.sockets.map(({ path }) => path) },
    certificateEnd: () => certificate?.notAfter ?? null,
    renewCertificate: (tls) => {
      if (certificate === null || tcpServer === null || tls === null) return false;
      const isAnother = certificate.renew(tls, tcpServer);
      try {
        announce();
      } catch (error) {
        const reason = { error: formatReason(error) };
        app.log.error(reason, 'listen.json cannot be written: commands do not find this process');
      }
      return isAnother;
    },
    answered: (limitMs) => soon(Promise.all(connections.map((each) => each.answered())), limitMs),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** The id of a product that the configuration names by its key. */
function idOf({ products }: App, productKey: string | null): string | null {
  return productKey === null ? null : (products?.idOf(productKey) ?? productKey);
}

/** Where the file cannot be removed, it names addresses at which nobody answers; all else is closed nevertheless. */
function removeIfThere(file: string): void {
  try {
    unlinkSync(file);
  } catch {
    // Its directory was moved or removed, or is on a disk that takes no writes any more.
  }
}

async function close(server: FastifyInstance, connections: Connections): Promise<void> {
  // Once a server closes, Node no longer ends the requests that do not arrive in time.
  const cut = setTimeout(() => connections.endAll(), lingerMs);
  await server.close();
  clearTimeout(cut);
}

/** Waits for something, but not for longer. */
async function soon(awaited: Promise<unknown>, limitMs: number): Promise<void> {
  const limit = new AbortController();
  const late = sleep(limitMs, undefined, { signal: limit.signal }).catch(() => undefined);
  await Promise.race([awaited, late]);
  limit.abort();
}
