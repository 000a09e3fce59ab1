import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { listen } from './listener.ts';

export interface Forwarder extends AsyncDisposable {
  readonly url: string;
  /** The requests, in order: an absolute URI, or `CONNECT host:port`. */
  readonly asked: string[];
}

/** A forward proxy on 127.0.0.1 that connects every name to `port`, or refuses with a status. */
export async function startForwarder(port: number, refuseWith: number | null = null): Promise<Forwarder> {
  const asked: string[] = [];
  const server = createServer((incoming: IncomingMessage, response: ServerResponse) => {
    const target = new URL(incoming.url ?? '');
    asked.push(target.href);
    const path = target.pathname + target.search;
    const { method, headers } = incoming;
    const outgoing = request({ host: '127.0.0.1', port, path, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(outgoing);
  });
  server.on('connect', (incoming: IncomingMessage, client: Duplex) => {
    asked.push(`CONNECT ${incoming.url}`);
    if (refuseWith !== null) {
      client.end(`HTTP/1.1 ${refuseWith} No\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    const target = connect(port, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connected\r\n\r\n');
      target.pipe(client).pipe(target);
    });
    client.on('error', () => target.destroy()).on('close', () => target.destroy());
    target.on('error', () => client.destroy());
  });
  const listener = await listen(server);
  return {
    url: `http://127.0.0.1:${listener.port}`,
    asked,
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}
