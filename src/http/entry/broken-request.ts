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

/** Answers what Node's parser does not make a request of, on the connections of one listener. */
export class BrokenRequests {
  readonly #app: Answering;
  readonly #connections: Connections;
  /** The requests whose body broke off, and what they are to be refused with. */
  readonly #brokenOff = new WeakMap<IncomingMessage, ProblemError>();

  constructor(app: Answering, connections: Connections) {
    this.#app = app;
    this.#connections = connections;
  }

  /**
   * Answers malformed bytes, headers too large or a timeout, and closes the connection. Complete requests before
   * them on the connection are answered first, or a caller would take this answer for theirs.
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
    // The body of a request broke off: its own route answers, so that it is logged and counted once.
    const error = new ProblemError(refused.code, refused.detail);
    begun.shouldKeepAlive = false;
    this.#brokenOff.set(begun.req, error);
    // Whoever reads the body already hears of it; others ask `refusalOf` before they read.
    if (begun.req.listenerCount('error') > 0) begun.req.emit('error', error);
  }

  /** What a request is to be refused with because its body broke off; undefined when it did not. */
  refusalOf(request: IncomingMessage): ProblemError | undefined {
    return this.#brokenOff.get(request);
  }

  /** Refuses CONNECT, behind the requests before it: this is no proxy. */
  refuseConnect(socket: Duplex): void {
    // Node leaves such a connection to us, with nobody who hears that its caller has left, which would end the process.
    socket.on('error', () => socket.destroy());
    // Nor does Node tell an answer under way any more that its caller has taken some of it: it would wait for that forever.
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

/** Says in words what an operator can do something about; of the rest the code. */
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
