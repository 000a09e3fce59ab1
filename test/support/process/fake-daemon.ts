import { once } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { proofOf, socketAddress, tcpAddress } from '../../../src/wire/proof.ts';
import { identityOf } from '../../../src/store/sqlite/files/private-file.ts';
import { temporaryDirectory } from '../temporary.ts';
import { socketPath } from '../network/socket-path.ts';

/** A request as the daemon received it. */
export interface Received {
  readonly line: string;
  readonly listener: 'socket' | 'tcp';
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** The daemon's next response; `undefined`: it closes the connection without a response. */
export interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** The content of `listen.json`. Default instance: the daemon's own. */
export interface Announcement {
  readonly socket: string | null;
  readonly tcp: string | null;
  readonly instance?: string;
}

export interface FakeDaemon extends AsyncDisposable {
  readonly stateDir: string;
  readonly socket: string;
  readonly url: string;
  /** The received requests, without `/livez`. */
  readonly received: readonly Received[];
  /** The requests for `/livez`, which is always answered. */
  readonly probes: readonly Received[];
  /** Sets the responses to the next requests. The last one is for all later requests, too. */
  readonly answer: (...replies: (Reply | undefined)[]) => void;
  /** Rewrites `listen.json`. */
  readonly announce: (listeners: Announcement) => Promise<void>;
  /** Sets the instance that every response names; null: none, like another program. */
  readonly become: (instance: string | null) => void;
  /** From now on, the daemon sends no proof, like older versions. */
  readonly age: () => void;
}

/** The time of the daemon's clock in every response. */
const fakeNow = '2026-03-01T12:00:00+00:00';

const adminToken = 'lk_admin_secret';

const ownInstance = 'b7f0e6f2-1111-7222-8333-444455556666';

/** Starts a fake daemon on a socket and a port, with a state directory. */
export async function startFakeDaemon(): Promise<FakeDaemon> {
  const directory = temporaryDirectory();
  const socket = socketPath(directory.path, 'fake.sock');
  const received: Received[] = [];
  const probes: Received[] = [];
  let instance: string | null = ownInstance;
  let isOlder = false;
  let replies: (Reply | undefined)[] = [{ body: { data: {} } }];
  const listen = (listener: 'socket' | 'tcp'): Server =>
    createServer((request, response) => {
      void text(request).then((body) => {
        const line = `${request.method} ${request.url}`;
        const nonce = /^GET \/livez\?nonce=(.*)$/.exec(line)?.[1];
        const isProbe = nonce !== undefined;
        (isProbe ? probes : received).push({ line, listener, headers: request.headers, body });
        response.setHeader('content-type', 'application/json');
        response.setHeader('date', new Date(fakeNow).toUTCString());
        if (instance !== null) response.setHeader('latchkey-instance', instance);
        if (isProbe) {
          const { localAddress, localPort, remoteAddress, remotePort } = request.socket;
          const client = { host: remoteAddress, port: remotePort };
          const address =
            listener === 'socket'
              ? socketAddress(socket)
              : tcpAddress({ host: localAddress, port: localPort }, client);
          const claim = { nonce, instance: ownInstance, address };
          const proof = { address, hmac: proofOf(adminToken, claim) };
          return response.end(JSON.stringify({ status: 'ok', reasons: [], ...(isOlder ? {} : { proof }) }));
        }
        const reply = replies.length > 1 ? replies.shift() : replies[0];
        if (reply === undefined) return request.socket.destroy();
        response.writeHead(reply.status ?? 200, reply.headers);
        return response.end(typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body));
      });
    });
  const servers = [listen('socket').listen(socket), listen('tcp').listen(0, '127.0.0.1')] as const;
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const url = `http://127.0.0.1:${(servers[1].address() as AddressInfo).port}`;
  const announce: FakeDaemon['announce'] = (listeners) =>
    writeFile(
      join(directory.path, 'listen.json'),
      JSON.stringify({ instance: ownInstance, directory: identityOf(directory.path), ...listeners }),
      { mode: 0o600 },
    );
  await announce({ socket, tcp: url });
  await writeFile(join(directory.path, 'admin.token'), `${adminToken}\n`, { mode: 0o600 });
  return {
    stateDir: directory.path,
    socket,
    url,
    received,
    probes,
    become: (next) => (instance = next),
    age: () => (isOlder = true),
    answer: (...next) => (replies = next),
    announce,
    [Symbol.asyncDispose]: async () => {
      for (const server of servers) server.close().closeAllConnections();
      await rm(socket, { force: true });
      await directory[Symbol.asyncDispose]();
    },
  };
}

/** A problem response (RFC 9457). */
export function problem(status: number, code: string, more: object = {}): Reply {
  const body = { type: `urn:latchkey:problem:${code}`, title: `Title of ${code}`, status, code, ...more };
  return { status, headers: { 'content-type': 'application/problem+json' }, body };
}

export const license: Record<string, unknown> = {
  license_key: 'ABCDE-FGHJK-LMNPQ-RSTUV',
  enabled: true,
  product_link: 'RGsF',
  buyer_email: 'buyer@example.com',
  uses: 3,
  date: '2024-02-22T11:23:05+00:00',
};

export const coupon: Record<string, unknown> = {
  id: 7,
  coupon_type: 'single',
  percent_off: null,
  amount_off: 550,
  code: 'FIVE',
  start_date: null,
  end_date: '2030-01-01T00:00:00+00:00',
  product_key: 'RGsF',
  collection_id: null,
  minimum_purchase_amount: 1000,
  usage_limit: 5,
  notes: null,
};
