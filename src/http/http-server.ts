import type * as Http from 'node:http';
import type { RequestListener, Server } from 'node:http';
import type * as Https from 'node:https';
import type { ServerOptions } from 'node:https';
import { createRequire } from 'node:module';
import type { Pipeline, ServerSettings } from './app.ts';
import type { Connections } from './entry/connections.ts';

// An import statement would also load the WebSocket and fetch of Node, which takes 40 ms.
const load = createRequire(import.meta.url);

/** Fastify's own default. */
const keepAliveTimeoutMs = 72_000;

/** Creates the server of one listener. It passes each request to the pipeline in its turn. */
export function createHttpServer(
  { limits, tls }: ServerSettings,
  connections: Connections,
  pipeline: Pipeline,
): Server {
  const { headerBytes, headerTimeoutMs, requestTimeoutMs } = limits;
  const headersTimeout = Math.min(headerTimeoutMs, requestTimeoutMs);
  const options = {
    ServerResponse: connections.responseClass,
    maxHeaderSize: headerBytes,
    headersTimeout,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    // How often Node looks for requests that ran out of time.
    connectionsCheckingInterval: Math.min(1_000, Math.max(10, Math.floor(headersTimeout / 4))),
    // The gate checks Host with a clearer message, and for HTTP/1.0 too.
    requireHostHeader: false,
  };
  const listener: RequestListener = (request, response) =>
    connections.inTurn(request, response, (...turn) => pipeline.handle(...turn));
  const server =
    tls === null
      ? (load('node:http') as typeof Http).createServer(options, listener)
      : createTlsServer(
          { ...options, cert: tls.chain, key: tls.key, handshakeTimeout: headersTimeout },
          listener,
        );
  connections.watch(server);
  // Node silently drops headers over its maximum: allow one more, so that the gate sees there are too many.
  // It doubles the number in 32 bits.
  server.maxHeadersCount = Math.min(limits.headerCount, 2 ** 29) + 1;
  // An unknown expectation may be ignored (RFC 9110 section 10.1.1).
  server.on('checkExpectation', listener);
  server.on('checkContinue', (request, response) => {
    connections.expect(response);
    listener(request, response);
  });
  return server;
}

/** `node:https` takes 1 MiB of memory, and most servers listen without TLS. */
function createTlsServer(options: ServerOptions, listener: RequestListener): Server {
  return (load('node:https') as typeof Https).createServer(options, listener);
}
