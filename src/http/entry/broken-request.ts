import type * as Http from 'node:http';
import type { IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import type { Duplex } from 'node:stream';
import { instanceHeader, requestIdHeader } from '../../domain/header-names.ts';
import { refuse } from '../../domain/problem/problem.ts';
import { problems, type ProblemCode } from '../../domain/problem/problem-table.ts';
import type { App } from '../app.ts';
import { ProblemError } from '../problem-error.ts';
import { logRequest } from '../request-log.ts';
import { serializeProblem } from '../../wire/response.ts';
import type { Connections } from './connections.ts';
import { newRequestId } from './request-state.ts';

// An import statement would also load the WebSocket and fetch of Node, which takes 40 ms.
const { STATUS_CODES } = createRequire(import.meta.url)('node:http') as typeof Http;

type Refused = { code: ProblemCode; detail: string };

type Answering = Pick<App, 'instance' | 'now' | 'log' | 'metrics'>;

/** Answers messages that Node's parser does not accept as requests, on the connections of one listener. */
export class BrokenRequests {
  readonly #app: Answering;
  readonly #connections: Connections;
  /** The requests whose body was cut off, each with the problem for its response. */
  readonly #brokenOff = new WeakMap<IncomingMessage, ProblemError>();

  constructor(app: Answering, connections: Connections) {
    this.#app = app;
    this.#connections = connections;
  }

  /**
   * Answers malformed bytes, too large headers or a timeout, and closes the connection. Complete requests that came
   * before on the connection are answered first, or the client would take this response for the response to those.
   */
  answer(cause: Error & { code?: string }, socket: Duplex): void {
    const isTls = /^(ERR_SSL|ERR_TLS|EPROTO)/.test(cause.code ?? '');
    if (isTls) this.#app.log.info({ error: explainTls(cause.code ?? '') }, 'a TLS connection failed');
    if (isTls || cause.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const unanswered = this.#connections.unanswered(socket);
    const complete = unanswered.findLast(({ req }) => req.complete);
    if (complete !== undefined) {
      // Responses are sent in the order of their requests, so the last one closes last.
      complete.once('close', () => this.answer(cause, socket));
      return;
    }
    const refused = refusals[cause.code ?? ''] ?? notHttp;
    const [begun] = unanswered;
    if (begun === undefined) {
      this.#refuse(socket, refused);
      return;
    }
    // The body of a request was cut off: its route answers, so that the request is logged and counted once.
    const error = new ProblemError(refused.code, refused.detail);
    begun.shouldKeepAlive = false;
    this.#brokenOff.set(begun.req, error);
    // If the body is being read, its reader gets the error. Otherwise `refusalOf` is called before the read.
    if (begun.req.listenerCount('error') > 0) begun.req.emit('error', error);
  }

  /** The problem of a request whose body was cut off; undefined for any other request. */
  refusalOf(request: IncomingMessage): ProblemError | undefined {
    return this.#brokenOff.get(request);
  }

  /** Refuses CONNECT after the earlier requests of the connection are answered: this server is no proxy. */
  refuseConnect(socket: Duplex): void {
    // Node hands over the socket without an error listener. An unhandled error would end the process.
    socket.on('error', () => socket.destroy());
    // Node also stops passing 'drain' to the response that is being written, which would wait for it forever.
    socket.on('drain', () => this.#connections.unanswered(socket)[0]?.emit('drain'));
    const refuseIt = (): void => {
      if (socket.writable)
        this.#refuse(socket, { code: 'malformed_request', detail: 'The target must be a path.' });
    };
    const before = this.#connections.unanswered(socket).at(-1);
    if (before === undefined) refuseIt();
    else before.once('close', refuseIt);
  }

  #refuse(socket: Duplex, { code, detail }: Refused): void {
    const { status } = problems[code];
    const requestId = newRequestId();
    logRequest(this.#app.log, { method: null, route: null, status, code, requestId, durationMs: 0 });
    this.#app.metrics.countUnrouted(status);
    const body = JSON.stringify(serializeProblem(refuse(code, detail).problem, requestId));
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
      'Content-Type: application/problem+json',
      `Content-Length: ${Buffer.byteLength(body)}`,
      `Date: ${new Date(this.#app.now()).toUTCString()}`,
      `${instanceHeader}: ${this.#app.instance}`,
      `${requestIdHeader}: ${requestId}`,
      'Connection: close',
    ];
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
    socket.once('finish', () => socket.destroy());
  }
}

/** Explains the TLS errors that an operator can solve; returns the code of any other error. */
function explainTls(code: string): string {
  if (code === 'ERR_SSL_HTTP_REQUEST') return 'the caller speaks plain HTTP';
  return /UNKNOWN_CA|CERTIFICATE/.test(code) ? `the caller does not trust the certificate (${code})` : code;
}

const notHttp: Refused = { code: 'malformed_request', detail: 'This is not HTTP as it is spoken here.' };

const refusals: Readonly<Record<string, Refused>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { code: 'request_timeout', detail: 'The request did not arrive in time.' },
  HPE_HEADER_OVERFLOW: {
    code: 'headers_too_large',
    detail: 'The request line and headers are larger than is taken here.',
  },
};
