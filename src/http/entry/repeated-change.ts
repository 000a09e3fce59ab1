import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';
import { idempotencyKeyHeader } from '../../domain/header-names.ts';
import type { Principal } from '../../domain/principal.ts';
import type { Problem } from '../../domain/problem.ts';
import type { Grant } from '../../service/access/credential.ts';
import type { App, ServerSettings } from '../app.ts';
import type { RefusalForm } from '../dialects/dialect.ts';
import { problemOf, refusalFormFor, refusalHeaders } from '../problem-answer.ts';
import { departure } from '../request.ts';
import { logRequest } from '../request-log.ts';
import type { Route } from '../route.ts';
import { noParameters } from '../wire/parameters.ts';
import { readParameters } from './body.ts';
import {
  hasHead,
  knownHead,
  requestId,
  timesSent,
  unrepeated,
  variableNames,
  writtenOut,
  type KnownHead,
} from './known-head.ts';
import { readWait } from './prefer.ts';
import { jsonType } from './repeated-request.ts';
import { requestIdFrom } from './request-id.ts';
import { stateOf } from './request-state.ts';

const contentLength = 'content-length';
/** A change with one of these is not like the next, or its body is not read as it comes. */
const unlike = [idempotencyKeyHeader.toLowerCase(), 'transfer-encoding', 'content-encoding', 'expect'];
/** In bytes: a change names a license key and little else. All of it fits into what the system reads at once. */
const longestBody = 16 * 1024;
/** What a change counts as whose caller left before the answer. */
const callerLeft = 499;

/** The head of a change that was answered on a connection, and what of it decides how the next is answered. */
type KnownChange = KnownHead & {
  route: Route;
  grant: Grant;
  /** Of the memory, before the grant was found. */
  moment: number;
  contentType: string;
  /** Where in `rawHeaders` the length of the body is. */
  lengthAt: number;
  waitMs: number;
  refusal: RefusalForm;
  /** The headers that all its answers have, and where the id of the request is among them. */
  headers: readonly string[];
  idAt: number;
};

/** When a change began: for the metrics, and for the log. */
type Times = { begunAt: number; startedAt: number };

/** A change that has passed every check. */
type Change = Times & {
  head: KnownChange;
  principal: Principal;
  values: unknown;
  id: string;
};

type Written = { status: number; headers: readonly string[]; body: object; code: Problem['code'] | null };

/**
 * Answers a change that has the head of one before on its connection: the gate and the hooks would find nothing else
 * in it, and only its body is read (src/http/README.md, Answers from memory).
 */
export class RepeatedChanges {
  readonly #app: App;
  readonly #settings: ServerSettings;
  readonly #routes: readonly Route[];
  readonly #mayDiffer: ReadonlySet<string>;
  /** In bytes. */
  readonly #longestBody: number;
  /** What each connection sent last; it goes with the connection, and so do the secrets in it. */
  readonly #heads = new WeakMap<Socket, KnownChange>();

  constructor(
    app: App,
    settings: ServerSettings,
    { routes, names }: { routes: readonly Route[]; names: ServerSettings['headerAliases'] },
  ) {
    this.#app = app;
    this.#settings = settings;
    this.#routes = routes;
    this.#mayDiffer = variableNames(names, [contentLength]);
    this.#longestBody = Math.min(settings.limits.bodyBytes, longestBody);
  }

  /** Answers the request, or leaves it as it came to `otherwise`: also one whose body comes in pieces, or breaks off. */
  take(request: IncomingMessage, response: ServerResponse, otherwise: () => void): void {
    const head = this.#heads.get(request.socket);
    const length = Number(request.rawHeaders[head?.lengthAt ?? -1]);
    const isShort = length > 0 && length <= this.#longestBody;
    if (head === undefined || !isShort || !isAsBefore(head, request)) {
      otherwise();
      return;
    }
    const times = { begunAt: this.#app.metrics.begin(), startedAt: this.#app.now() };
    const look = (): void => {
      request.off('readable', look).off('error', look);
      if (request.destroyed) {
        this.#miss(head, request, times);
        return;
      }
      // What is read in part would not be read to its end by a route that refuses it.
      const isWhole = request.readableLength === length;
      const change = isWhole ? this.#read(head, request, times) : null;
      if (change === null) otherwise();
      else void this.#answer(change, response);
    };
    request.on('readable', look).on('error', look);
  }

  /** Remembers the head of a change that was answered; `reply` has the headers that are the same for all. */
  keep(route: Route, reply: FastifyReply): void {
    const { raw } = reply.request;
    const { grant, moment, head } = stateOf(reply.request);
    const before = this.#heads.get(raw.socket);
    const isSame = before !== undefined && isAsBefore(before, raw);
    if (isSame && this.#app.memory?.credentialsHoldSince(before.moment) === true) return;
    if (grant === null || !this.#isRepeatable(route, raw)) return;
    const headers = writtenOut(reply.getHeaders());
    this.#heads.set(raw.socket, {
      ...knownHead(raw.rawHeaders, this.#mayDiffer),
      route,
      grant,
      moment,
      contentType: head.contentType[0] ?? '',
      lengthAt: raw.rawHeaders.findIndex((name) => name.toLowerCase() === contentLength) + 1,
      waitMs: readWait(head.prefer),
      refusal: refusalFormFor(this.#app, reply.request),
      headers,
      idAt: headers.indexOf(requestId) + 1,
    });
  }

  /** Whether another request with the same head, and the same target, is the same change. */
  #isRepeatable(route: Route, { url, method, httpVersion, rawHeaders }: IncomingMessage): boolean {
    return (
      this.#app.memory !== null &&
      // Where a refusal cuts the connection off, the route does that.
      this.#settings.unknown === 'problem' &&
      route.isVerdict === true &&
      route.body !== undefined &&
      route.query === undefined &&
      method === route.method &&
      url === route.path &&
      httpVersion === '1.1' &&
      timesSent(rawHeaders, contentLength) === 1 &&
      timesSent(rawHeaders, requestId) <= 1 &&
      unlike.every((name) => timesSent(rawHeaders, name) === 0)
    );
  }

  /** Null: something is wrong, which the route finds as well; the body is where it was. */
  #read(head: KnownChange, request: IncomingMessage, times: Times): Change | null {
    const body = request.read() as Buffer | null;
    if (body === null) return null;
    const change = this.#check(head, request, body);
    if (change === null) request.unshift(body);
    return change && { ...change, ...times };
  }

  #check(head: KnownChange, { rawHeaders }: IncomingMessage, body: Buffer): Omit<Change, keyof Times> | null {
    const app = this.#app;
    if (unrepeated.has(app.readiness().state)) return null;
    if (app.memory?.credentialsHoldSince(head.moment) !== true) return null;
    const principal = app.credentials.use(head.grant);
    if (principal === null || principal === 'expired') return null;
    const values = this.#valuesOf(head, body);
    // The last of the checks, since it counts: whoever is refused here is refused anew by the route.
    if (values === null || app.rates.requests.take(principal.credential) > 0) return null;
    return { head, principal, values, id: requestIdFrom(rawHeaders[head.requestIdAt]) };
  }

  #valuesOf({ route, contentType }: KnownChange, body: Buffer): unknown {
    try {
      const { parameters } = this.#settings.limits;
      const parsed = route.body?.read(readParameters(contentType, body, parameters));
      return parsed?.ok === true ? parsed.values : null;
    } catch {
      return null;
    }
  }

  async #answer(change: Change, response: ServerResponse): Promise<void> {
    const { head, id, begunAt } = change;
    const written = await this.#carryOut(change, response);
    const { status, headers, body } = written;
    const text = JSON.stringify(body);
    const all = [...head.headers, ...headers, contentLength, String(Buffer.byteLength(text))];
    all[head.idAt] = id;
    this.#log(change, written);
    response.writeHead(status, all);
    response.end(text);
    this.#app.metrics.countAnswer(head.route.path, response.destroyed ? callerLeft : status, begunAt);
  }

  /** The connection was lost before the body came: there is nobody to answer, and nothing that a route could read. */
  #miss(head: KnownChange, { rawHeaders, errored }: IncomingMessage, times: Times): void {
    const id = requestIdFrom(rawHeaders[head.requestIdAt]);
    this.#log(
      { head, id, ...times },
      refused(head, problemOf(this.#app, errored, { id, hasLeft: true }), id),
    );
    this.#app.metrics.countAnswer(head.route.path, callerLeft, times.begunAt);
  }

  #log({ head, id, startedAt }: Pick<Change, 'head' | 'id' | 'startedAt'>, { status, code }: Written): void {
    const { method, path: route } = head.route;
    const durationMs = this.#app.now() - startedAt;
    logRequest(this.#app.log, { method, route, status, code, requestId: id, durationMs });
  }

  /** Does what is asked; never rejects. */
  async #carryOut({ head, principal, values, id }: Change, response: ServerResponse): Promise<Written> {
    const app = this.#app;
    const { route, waitMs } = head;
    try {
      const result = await route.handle({
        app,
        routes: this.#routes,
        principal,
        path: {},
        query: null,
        body: values,
        sentTo: { path: route.path, query: noParameters },
        writeOptions: { actor: principal.credential, requestId: id, idempotency: null },
        waitMs,
        signal: departure(response),
      });
      if (!result.ok) return refused(head, result.problem, id);
      const { status, headers, body } = result.value;
      const own = [...writtenOut(headers), 'content-type', jsonType];
      return { status, headers: own, body: body as object, code: null };
    } catch (error) {
      return refused(head, problemOf(app, error, { id, hasLeft: response.destroyed }), id);
    }
  }
}

function isAsBefore(head: KnownChange, { method, url, httpVersion, rawHeaders }: IncomingMessage): boolean {
  const { route } = head;
  return method === route.method && url === route.path && httpVersion === '1.1' && hasHead(head, rawHeaders);
}

function refused({ refusal }: KnownChange, problem: Problem, id: string): Written {
  const { status, body } = refusal.present(problem, id);
  const headers = [...writtenOut(refusalHeaders(problem)), 'content-type', refusal.mediaType];
  return { status, headers, body, code: problem.code };
}
