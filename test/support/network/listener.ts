import { once } from 'node:events';
import { createServer } from 'node:https';
import type { Server, Socket } from 'node:net';
import { certificate, privateKey } from './certificate.ts';

export interface Listener extends AsyncDisposable {
  readonly port: number;
  /** The URL of a plain HTTP listener. */
  readonly url: string;
}

/**
 * Opens any kind of server on 127.0.0.1, by default on any port. Disposing it closes its connections, too.
 */
export async function listen(server: Server, wanted = 0): Promise<Listener> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    // A client that disconnects is not an error of the server.
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  });
  server.listen(wanted, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = address !== null && typeof address === 'object' ? address.port : 0;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** A server with the certificate for `localhost` that answers every request with 404 and a message. */
export function listenSecurely(): Promise<Listener> {
  return listen(
    createServer({ cert: certificate, key: privateKey }, (_, response) => {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"over TLS"}');
    }),
  );
}
