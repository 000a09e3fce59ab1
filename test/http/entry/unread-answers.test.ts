import { once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { listenSocket } from '../../../src/http/listen.ts';
import type { Status } from '../../../src/service/status.ts';
import {
  adminToken,
  authorityStatus,
  limits,
  openApp,
  serverOf,
  silentMetrics,
} from '../../support/app/http-app.ts';
import { serveApp, type Served } from '../../support/app/http-served.ts';
import { CallerConnection } from '../../support/network/caller-connection.ts';
import { socketPath } from '../../support/network/socket-path.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const listeners = ['tcp', 'tls', 'socket'] as const;
const mebibyte = 1024 ** 2;
const readExport = requestOf('/admin/v1/licenses/export');
const readMetrics = requestOf('/metrics');

function requestOf(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${adminToken}\r\n\r\n`;
}

/** The same request as the last of its connection. */
function lastOf(request: string): string {
  return request.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');
}

/** Serves metrics of a given length; `made` is how many such responses were built. */
async function serveMetrics(bytes: number): Promise<Served & { made: () => number }> {
  let made = 0;
  const expose = async (): Promise<string> => {
    made += 1;
    return 'a'.repeat(bytes);
  };
  const metrics = { ...silentMetrics, expose };
  const served = await serveApp({ metrics }, { limits: { ...limits, connections: 32 } });
  return { ...served, made: () => made };
}

/** A caller that stops reading after the first bytes of its first response. */
class UnreadCaller {
  readonly #connection: CallerConnection;
  bytes = 0;

  private constructor(connection: CallerConnection) {
    this.#connection = connection;
    connection.socket.on('data', (chunk: Buffer) => (this.bytes += chunk.length));
  }

  static async send(listener: Served['listeners']['tcp'], requests: string): Promise<UnreadCaller> {
    const connection = await CallerConnection.open(listener);
    const caller = new UnreadCaller(connection);
    connection.socket.write(requests);
    await once(connection.socket, 'data');
    connection.socket.pause();
    return caller;
  }

  end(): void {
    this.#connection.socket.destroy();
  }

  read(): void {
    this.#connection.socket.resume();
  }

  /** Reads until the connection ends; returns the number of bytes. */
  async readAll(): Promise<number> {
    this.read();
    await this.#connection.closed;
    return this.bytes;
  }
}

test.each(listeners)(
  'if a caller sends 99 requests at once (%s), further requests are handled only as it reads its responses',
  async (kind) => {
    await using served = await serveMetrics(6 * mebibyte);
    const caller = await UnreadCaller.send(
      served.listeners[kind],
      readMetrics.repeat(98) + lastOf(readMetrics),
    );
    // When another caller has been answered, the server has finished what it had begun.
    const other = await CallerConnection.open(served.listeners[kind]);
    expect(await other.ask(readMetrics.replace('/metrics', '/statusz'))).toContain(' 200 ');
    expect(served.made()).toBeLessThanOrEqual(20);
    caller.end();
  },
);

test.each(listeners)(
  'a caller that sends 99 requests at once (%s) and reads gets all 99 responses',
  async (kind) => {
    await using served = await serveMetrics(mebibyte);
    const caller = await UnreadCaller.send(
      served.listeners[kind],
      readMetrics.repeat(98) + lastOf(readMetrics),
    );
    expect(await caller.readAll()).toBeGreaterThan(99 * mebibyte);
    expect(served.made()).toBe(99);
  },
);

test.each(listeners)(
  'if a caller sends 20 exports at once (%s), each export is read only after the export before it was sent',
  async (kind) => {
    let pages = 0;
    const longRead = async (): Promise<never> => {
      pages += 1;
      return { csv: 'a'.repeat(6 * mebibyte), last: null } as never;
    };
    await using served = await serveApp({ longRead });
    const caller = await UnreadCaller.send(
      served.listeners[kind],
      readExport.repeat(19) + lastOf(readExport),
    );
    const other = await CallerConnection.open(served.listeners[kind]);
    expect(await other.ask(readMetrics.replace('/metrics', '/statusz'))).toContain(' 200 ');
    expect(pages).toBe(1);
    expect(await caller.readAll()).toBeGreaterThan(20 * 6 * mebibyte);
    expect(pages).toBe(20);
  },
);

test('while a response is unsent, the object that it was made of is not kept', async () => {
  const made: WeakRef<object>[] = [];
  const status = (): Status => {
    const sockets = Array.from({ length: 6 * 1024 }, () => 'a'.repeat(1024));
    made.push(new WeakRef(sockets));
    return { ...authorityStatus, listeners: { ...authorityStatus.listeners, sockets } };
  };
  await using opened = await openApp({ status });
  await using directory = temporaryDirectory();
  const server = serverOf(opened.app, { listener: 'socket' });
  // As the metrics of the daemon do, which need the request until its response is sent.
  server.addHook('onRequest', (_, reply, next) => {
    reply.raw.once('close', () => reply.elapsedTime);
    next();
  });
  const socket = socketPath(directory.path);
  await listenSocket(server, { path: socket, mode: 0o600 });
  const caller = await UnreadCaller.send({ socket }, requestOf('/statusz').repeat(10));
  const other = await CallerConnection.open({ socket });
  expect(await other.ask(readMetrics)).toContain(' 200 ');
  expect(made).toHaveLength(10);
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  expect(made.filter((each) => each.deref() !== undefined)).toEqual([]);
  caller.end();
  await server.close();
});

// Windows takes a response of any length into its own memory at once, so it does not wait in this process.
test.each(process.platform === 'win32' ? ['socket' as const] : listeners)(
  'if more than 64 MiB of responses wait (%s), the connection whose response waits longest is closed',
  async (kind) => {
    await using served = await serveMetrics(24 * mebibyte);
    const listener = served.listeners[kind];
    const first = await UnreadCaller.send(listener, readMetrics);
    const second = await UnreadCaller.send(listener, readMetrics);
    const third = await UnreadCaller.send(listener, readMetrics);
    second.read();
    third.read();
    await expect.poll(() => Math.min(second.bytes, third.bytes)).toBeGreaterThan(24 * mebibyte);
    expect(await first.readAll()).toBeLessThan(24 * mebibyte);
  },
);

test('a single response of more than 64 MiB is sent completely', async () => {
  await using served = await serveMetrics(80 * mebibyte);
  const caller = await UnreadCaller.send(served.listeners.tcp, lastOf(readMetrics));
  expect(await caller.readAll()).toBeGreaterThan(80 * mebibyte);
});
