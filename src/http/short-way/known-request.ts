import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';
import { LRUCache } from 'lru-cache';
import { idempotencyKeyHeader, requestIdHeader } from '../../domain/header-names.ts';
import { isSamePrincipal, type Principal } from '../../domain/access/principal.ts';
import type { Grant, SentCredential } from '../../service/access/credential.ts';
import type { App, Readiness } from '../app.ts';
import type { RefusalForm } from '../dialects/dialect.ts';
import { hangUpFor, refusalFormFor } from '../problem-answer.ts';
import type { Route } from '../route.ts';
import { readWait } from '../entry/waiting-requests.ts';
import { stateOf } from '../entry/request-state.ts';

export const jsonType = 'application/json; charset=utf-8';
const contentLengthName = 'content-length';

/** The header of a caller's own id of a request, as names are compared. */
export const requestIdName: string = requestIdHeader.toLowerCase();

/** What differs from request to request, and decides nothing of the answer but its `X-Request-Id`. */
const variableOfRead: ReadonlySet<string> = new Set([requestIdName, 'traceparent', 'tracestate']);

const idempotencyKeyName = idempotencyKeyHeader.toLowerCase();
const variableOfChange: ReadonlySet<string> = new Set([
  ...variableOfRead,
  contentLengthName,
  idempotencyKeyName,
]);

/** How many heads are remembered by their digests: those that were used last. */
const mostHeads = 1_000;

/** In these, a request is refused by its route, or its answer ends the connection. */
const unrepeated: ReadonlySet<Readiness['state']> = new Set(['starting', 'leaving', 'draining']);

/** A request that was answered, and what of its head decides how another with the same is answered. */
export type KnownRequest = {
  readonly rawHeaders: readonly string[];
  /** Where in `rawHeaders` the values are that may be others. */
  readonly variableAt: readonly number[];
  /** Where the caller's own id of the request is; -1: it sends none. */
  readonly requestIdAt: number;
  /** Where the length of the body is; -1: there is none. */
  readonly lengthAt: number;
  /** Where the idempotency key of a change is; -1: it sends none. */
  readonly idempotencyKeyAt: number;
  readonly route: Route;
  /** Null: its socket tells whom it comes from. */
  readonly sentCredential: SentCredential | null;
  /** As it was found last. */
  grant: Grant;
  /** Whose license keys are asked for, and the page that asks: all that what is said of one takes from the head. */
  readonly asker: string;
  readonly contentType: string;
  readonly waitMs: number;
  readonly isAgent: boolean;
  readonly refusal: RefusalForm;
  /** What is done instead where nothing can be said of a license key. */
  readonly hangUp: ReturnType<typeof hangUpFor>;
  /** The headers that all its answers have, as names and values in turn, and where the id of the request is in them. */
  readonly headers: readonly string[];
  readonly idAt: number;
};

/**
 * Verifies and changes of licenses that were answered: in another with the same head the gate and the hooks would find
 * nothing else (src/http/README.md, Response cache).
 */
export class KnownRequests {
  readonly #app: App;
  // The last of each connection. They go with it, and so do the secrets in them.
  readonly #reads = new WeakMap<Socket, KnownRequest>();
  readonly #changes = new WeakMap<Socket, KnownRequest>();
  /** By the digests of their heads, for connections that begin. */
  readonly #ofAll = new LRUCache<string, Omit<KnownRequest, 'rawHeaders'>>({ max: mostHeads });

  constructor(app: App) {
    this.#app = app;
  }

  /** One before that has the same head, on its connection or another; null: there is none. */
  find(request: IncomingMessage): KnownRequest | null {
    const ofConnection = this.#findOnConnection(request);
    if (ofConnection !== null) return ofConnection;
    const known = this.#ofAll.get(this.#digestOf(request));
    if (known === undefined) return null;
    const { rawHeaders } = request;
    return this.#setOnConnection(request, { ...known, rawHeaders });
  }

  #findOnConnection(request: IncomingMessage): KnownRequest | null {
    const known = this.#onConnections(request).get(request.socket);
    return known !== undefined && hasHead(known, request) ? known : null;
  }

  #setOnConnection(request: IncomingMessage, known: KnownRequest): KnownRequest {
    this.#onConnections(request).set(request.socket, known);
    return known;
  }

  #onConnections({ method }: IncomingMessage): WeakMap<Socket, KnownRequest> {
    return method === 'GET' ? this.#reads : this.#changes;
  }

  /** Of all in a request that decides whether it is another one, but for the query of a verify. */
  #digestOf({ method = '', url = '', httpVersion, rawHeaders }: IncomingMessage): string {
    const mayDiffer = namesThatMayDiffer(method);
    const compared = rawHeaders.map((text, index) => {
      const isVariable = index % 2 === 1 && mayDiffer.has(rawHeaders[index - 1]?.toLowerCase() ?? '');
      return isVariable ? '' : text;
    });
    const target = method === 'GET' ? url.split('?', 1)[0] : url;
    return this.#app.digest(JSON.stringify([method, target, httpVersion, compared]));
  }

  /** Whom another such request comes from, where that is known and it need not be refused; null: ask its route. */
  principalOf(request: KnownRequest): Principal | null {
    const { credentials, knownGrants } = this.#app;
    if (knownGrants === null || unrepeated.has(this.#app.readiness().state)) return null;
    const grant =
      request.sentCredential === null ? request.grant : knownGrants.grantOf(request.sentCredential);
    if (grant === null) return null;
    if (grant !== request.grant) {
      if (!isSamePrincipal(grant.principal, request.grant.principal)) return null;
      request.grant = grant;
    }
    const principal = credentials.use(grant);
    return principal === 'expired' ? null : principal;
  }

  /** Remembers a request that was answered; `reply` has the headers that all its answers have. Null: it is like no other. */
  keep(route: Route, reply: FastifyReply): KnownRequest | null {
    const { raw } = reply.request;
    const { grant } = stateOf(reply.request);
    if (this.#app.knownGrants === null || grant === null || !isRepeatable(route, raw)) return null;
    const before = this.#findOnConnection(raw);
    if (before?.route === route && isSamePrincipal(before.grant.principal, grant.principal)) return before;
    const { rawHeaders, ...known } = this.#knownOf(route, reply, grant);
    this.#ofAll.set(this.#digestOf(raw), known);
    return this.#setOnConnection(raw, { ...known, rawHeaders });
  }

  #knownOf(route: Route, reply: FastifyReply, grant: Grant): KnownRequest {
    const { rawHeaders, method = '' } = reply.request.raw;
    const { sentCredential, head } = stateOf(reply.request);
    const { isOperator, reach } = grant.principal;
    const names = rawHeaders.map((name, index) => (index % 2 === 0 ? name.toLowerCase() : ''));
    const mayDiffer = namesThatMayDiffer(method);
    const variableNames = [...names.keys()].filter((index) => mayDiffer.has(names[index] ?? ''));
    const valueOf = (name: string): number => (names.includes(name) ? names.indexOf(name) + 1 : -1);
    const headers = writtenOut(reply.getHeaders());
    return {
      rawHeaders,
      variableAt: variableNames.map((index) => index + 1),
      requestIdAt: valueOf(requestIdName),
      lengthAt: valueOf(contentLengthName),
      idempotencyKeyAt: valueOf(idempotencyKeyName),
      route,
      sentCredential,
      grant,
      asker: JSON.stringify([route.path, isOperator, reach.accountId, reach.productKey, head.origin]),
      contentType: head.contentType[0] ?? '',
      waitMs: readWait(head.prefer),
      isAgent: head.instance.length > 0,
      refusal: refusalFormFor(this.#app, reply.request),
      hangUp: hangUpFor(reply.request),
      headers,
      idAt: headers.indexOf(requestIdName) + 1,
    };
  }
}

/** No credential is among them: the configuration takes none of these names for one (`listen.header_aliases`). */
function namesThatMayDiffer(method: string): ReadonlySet<string> {
  return method === 'GET' ? variableOfRead : variableOfChange;
}

/** Whether another request with the same head, and a change with the same target, is the same request. */
function isRepeatable(route: Route, { url, method, httpVersion, rawHeaders }: IncomingMessage): boolean {
  if (route.isVerdict !== true || method !== route.method || httpVersion !== '1.1') return false;
  if (timesSent(rawHeaders, requestIdName) > 1) return false;
  // Behind another answer it ends the connection, which others with the same head do not.
  if (timesSent(rawHeaders, 'expect') > 0) return false;
  if (method === 'GET') return true;
  return (
    route.body !== undefined &&
    route.query === undefined &&
    url === route.path &&
    timesSent(rawHeaders, contentLengthName) === 1
  );
}

/** Whether a request has the known head, but for what may differ; the target of a verify is not looked at. */
function hasHead(
  { route, rawHeaders: known, variableAt }: KnownRequest,
  { url, method, httpVersion, rawHeaders: sent }: IncomingMessage,
): boolean {
  if (method !== route.method || httpVersion !== '1.1' || sent.length !== known.length) return false;
  if (method !== 'GET' && url !== route.path) return false;
  for (let index = 0; index < sent.length; index += 1) {
    if (sent[index] !== known[index] && !variableAt.includes(index)) return false;
  }
  return true;
}

/** How often a header was sent; the name in lower case. */
function timesSent(rawHeaders: readonly string[], name: string): number {
  return rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === name).length;
}

/** Writes an answer out: the headers that all answers of its request have, then its own. */
export function writeAnswer(
  { headers: common }: KnownRequest,
  { headers, type, body }: { headers: Readonly<Record<string, string>>; type: string; body: unknown },
): { headers: string[]; body: string } {
  const text = JSON.stringify(body);
  const content = ['content-type', type, contentLengthName, String(Buffer.byteLength(text))];
  return { headers: [...common, ...writtenOut(headers), ...content], body: text };
}

/** The headers of a reply as names and values in turn. */
function writtenOut(headers: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) => [name.toLowerCase(), String(value)]);
}
