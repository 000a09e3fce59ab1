import type * as Http from 'node:http';
import type { IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import type { Duplex } from 'node:stream';
import type { FastifyReply, FastifyRequest, FastifyInstance } from 'fastify';
import type { App, HttpLimits, ServerSettings } from '../app.ts';
import { logRequest } from './request-log.ts';
import { pathOf, readPairs } from './request.ts';
import { type Head, headReader, newRequestId } from './request-state.ts';
import type { WebPage, UnknownRoute } from '../web-page.ts';
import { ProblemError } from '../problem-error.ts';
import { hidesVerdict } from '../problem-response.ts';
import type { RawParameters } from '../../wire/parameters.ts';
import {
  idempotencyKeyHeader,
  instanceHeader,
  provenanceHeaderNames,
  requestIdHeader,
  leftOutHeader,
} from '../../domain/header-names.ts';
import type { Route } from '../route.ts';
import { closeAfter, type Connections } from './connections.ts';
import { failWith } from '../../domain/problem/problem.ts';
import type { ProblemCode } from '../../domain/problem/problem-table.ts';

type Arriving = { names: ServerSettings['headerAliases']; origins: Origins; pages: readonly WebPage[] };

/** Makes the function that checks each request of a listener before its route (src/http/entry/README.md, The order of checks). */
export function requestCheck(
  app: App,
  settings: ServerSettings,
  { names, origins, pages }: Arriving,
): (request: FastifyRequest, reply: FastifyReply) => void {
  const readHead = headReader(names);
  return (request, reply) => {
    const head = readHead(request.raw);
    checkTarget(request.raw, head, settings);
    if (!isFromPage(pages, head, request, settings)) origins.admit(head, request, reply);
    const query = readQuery(request.raw, head, settings.limits);
    if (head.instance.includes(app.instance)) {
      throw new ProblemError('loop_detected', 'The upstream of this agent leads to this agent itself.');
    }
    request.state = {
      head,
      query,
      bodyDigest: '',
      principal: null,
      knownCredential: null,
      mask: null,
      response: null,
      startedAt: app.now(),
    };
  };
}

/** A dot at the end marks a complete name: resolvers then do not try their search domains. */
const hostPattern =
  /^(?:\[(?<v6>[0-9a-f:.]+)\]|(?<name>[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?)\.?)(?::\d{1,5})?$/i;
const loopbackPattern = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/;
/** A path of printable characters, with or without a query. */
const targetPattern = /^\/[\x21\x22\x24-\x7e]*$/;

/** Throws a problem if a request is malformed or is for another server. */
function checkTarget(message: IncomingMessage, head: Head, settings: ServerSettings): void {
  const { limits } = settings;
  // Node's parser also accepts a request line without a version (HTTP/0.9) and the text HTTP/2.0.
  if (!/^1\.[01]$/.test(message.httpVersion)) throw malformed('HTTP/1.1 is spoken here.');
  if (head.count > limits.headerCount) {
    throw new ProblemError('headers_too_large', `There are more than ${limits.headerCount} headers.`);
  }
  checkHost(head.host, settings);
  if (!targetPattern.test(message.url ?? '')) throw malformed('The target must be a path.');
}

const eventsPath = '/hooks/v1/';

/** Reads the parameters of the query; throws a problem if the request is ambiguous. */
function readQuery(
  { method, url = '', headers }: IncomingMessage,
  head: Head,
  { parameters: maximum }: HttpLimits,
): RawParameters {
  const mark = url.indexOf('?');
  const query = mark === -1 ? '' : url.slice(mark + 1);
  // Stores send an event again that gets another status than 200, so nothing about an event is refused here.
  if (method === 'POST' && pathOf(url).startsWith(eventsPath)) return new Map(new URLSearchParams(query));
  if (head.contentType.length > 1) throw malformed('Content-Type is sent twice.');
  if (head.areCredentialsDifferent) throw malformed('A header carries two different credentials.');
  const hasBody = headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
  if (hasBody && (method === 'GET' || method === 'HEAD')) throw malformed(`A ${method} has no body here.`);
  return readPairs(query, { malformed: 'malformed_request', maximum });
}

/** Whether a `Host` is a loopback address. */
export function isLoopbackHost(host: string): boolean {
  const groups = hostPattern.exec(host)?.groups;
  return loopbackPattern.test((groups?.['v6'] ?? groups?.['name'] ?? '').toLowerCase());
}

function checkHost(hosts: readonly string[], settings: ServerSettings): void {
  const { listener, allowedHosts, public: publicListener } = settings;
  const [host] = hosts;
  const groups = host === undefined ? undefined : hostPattern.exec(host)?.groups;
  if (groups === undefined || hosts.length > 1) throw malformed('Exactly one well-formed Host is needed.');
  const name = (groups['v6'] ?? groups['name'] ?? '').toLowerCase();
  if (listener === 'socket' || loopbackPattern.test(name) || allowedHosts.includes(name)) return;
  if (publicListener !== undefined && name === publicListener.issuerHost()) return;
  throw new ProblemError('host_forbidden', 'This host is neither loopback nor in listen.allowed_hosts.');
}

function malformed(detail: string): ProblemError {
  return new ProblemError('malformed_request', detail);
}

/** Whether a page of this listener has sent a request. */
function isFromPage(
  pages: readonly WebPage[],
  head: Head,
  request: FastifyRequest,
  listener: ServerSettings,
): boolean {
  return pages.some((page) => page.isServedAt(listener) && page.hasSent(head, request, listener));
}

/** The routes for software, which allowed pages may call. Pages cannot call the routes for people and probes. */
const openToPages = /^\/(?:api|agent|v2)\//;

/** The response headers that a page may read. */
const readable = [
  instanceHeader,
  requestIdHeader,
  ...Object.values(provenanceHeaderNames),
  leftOutHeader,
  'Age',
  'Cache-Status',
  'Link',
  'Location',
  'Retry-After',
  'X-Total-Count',
].join(', ');

/** For how many seconds a browser may cache a preflight. */
const preflightAgeS = '600';

type PreflightParts = {
  /** The headers that carry a credential. */
  credentialNames: readonly string[];
  /** Makes the problem for an OPTIONS request that is no preflight. */
  unknownRoute: UnknownRoute;
};

/** Answers requests of web pages only if their origin is in `listen.allowed_origins` (src/http/README.md, Web pages). */
export class Origins {
  readonly #allowed: readonly string[];

  constructor(allowed: readonly string[]) {
    this.#allowed = allowed;
  }

  /** Accepts requests of programs, and requests of allowed pages to routes for software; throws a problem for others. */
  admit({ origin: origins, referer }: Head, request: FastifyRequest, reply: FastifyReply): void {
    const isOpen = openToPages.test(request.routeOptions.url ?? '');
    const [origin, ...more] = origins;
    if (origin === undefined && referer.length === 0) return;
    if (!isOpen || origin === undefined || more.length > 0 || !this.#allowed.includes(origin)) {
      throw new ProblemError('origin_forbidden', 'Requests with Origin or Referer are not answered.');
    }
    reply.header('Access-Control-Allow-Origin', origin).header('Access-Control-Expose-Headers', readable);
  }

  /** Makes a server answer preflights of allowed pages (`admit` has checked the origin). */
  answerPreflights(
    server: FastifyInstance,
    routes: readonly Route[],
    { credentialNames, unknownRoute }: PreflightParts,
  ): void {
    if (this.#allowed.length === 0) return;
    const paths = new Set(routes.map(({ path }) => path).filter((path) => openToPages.test(path)));
    const headers = [
      'Content-Type',
      idempotencyKeyHeader,
      requestIdHeader,
      'Prefer',
      ...credentialNames,
    ].join(', ');
    for (const path of paths) {
      const methods = routes.filter((route) => route.path === path).map(({ method }) => method);
      server.options(path, (request, reply) => {
        const { origin, 'access-control-request-method': wanted } = request.headers;
        if (origin === undefined || wanted === undefined) throw unknownRoute(request, reply);
        reply
          .code(204)
          .header('Access-Control-Allow-Methods', methods.join(', '))
          .header('Access-Control-Allow-Headers', headers)
          .header('Access-Control-Max-Age', preflightAgeS);
        return closeAfter(reply).send();
      });
    }
  }
}

// An import statement would also load the WebSocket and fetch of Node, which takes 40 ms.
const { STATUS_CODES } = createRequire(import.meta.url)('node:http') as typeof Http;

type Refused = { code: ProblemCode; detail: string };

type Answering = Pick<App, 'instance' | 'now' | 'log' | 'metrics' | 'dialect'>;

/** Answers messages that Node's parser does not accept as requests, on the connections of one listener. */
export class BrokenRequests {
  readonly #app: Answering;
  readonly #connections: Connections;
  readonly #unknown: ServerSettings['unknown'];
  /** The requests whose body was cut off, each with the problem for its response. */
  readonly #brokenOff = new WeakMap<IncomingMessage, ProblemError>();

  constructor(app: Answering, connections: Connections, { unknown }: Pick<ServerSettings, 'unknown'>) {
    this.#app = app;
    this.#connections = connections;
    this.#unknown = unknown;
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
    const { refusal } = this.#app.dialect;
    const requestId = newRequestId();
    // The path is not known. Most requests that can be too large are those of existing software, under `/api`.
    const { status, body: object } = refusal.present(failWith(code, detail).problem, requestId);
    logRequest(this.#app.log, { method: null, route: null, status, code, requestId, durationMs: 0 });
    this.#app.metrics.countUnrouted(status);
    // Software would take the 408 of a slow machine for a refusal of its license key.
    if (this.#unknown === 'reset' && hidesVerdict(status)) {
      socket.destroy();
      return;
    }
    const body = JSON.stringify(object);
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
      `Content-Type: ${refusal.mediaType}`,
      `Content-Length: ${Buffer.byteLength(body)}`,
      `Date: ${new Date(this.#app.now()).toUTCString()}`,
      `${instanceHeader}: ${this.#app.instance}`,
      `${requestIdHeader}: ${requestId}`,
      'Cache-Control: no-store',
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
    detail: 'The request line and headers are larger than the limit.',
  },
};

/** The problem of a request that matches no route by its path or its method. */
export function unknownRouteProblem(
  routes: readonly Route[],
  { method, url }: FastifyRequest,
  reply: FastifyReply,
): ProblemError {
  const path = pathOf(url);
  const exact = routes.filter((route) => route.path === path);
  const matching = exact.length > 0 ? exact : routes.filter((route) => matches(route.path, path));
  const allowed = matching.map((route) => route.method);
  if (allowed.length === 0) return new ProblemError('route_not_found', 'There is nothing at this path.');
  reply.header('Allow', allowed.flatMap((each) => (each === 'GET' ? ['GET', 'HEAD'] : [each])).join(', '));
  return new ProblemError('method_not_allowed', `${method} is not allowed here.`);
}

/** Whether the path of one route matched the `:parameter` of another route, because only that route has the method. */
export function isShadowed(routes: readonly Route[], { routeOptions, url }: FastifyRequest): boolean {
  if (routeOptions.url?.includes(':') !== true) return false;
  const path = pathOf(url);
  // A request may also send the pattern of the route itself as its path.
  return path !== routeOptions.url && routes.some((route) => route.path === path);
}

function matches(pattern: string, path: string): boolean {
  const parts = path.split('/');
  const expected = pattern.split('/');
  return (
    parts.length === expected.length &&
    expected.every((part, index) => part.startsWith(':') || part === parts[index])
  );
}
