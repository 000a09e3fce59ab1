import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Principal } from '../../domain/access/principal.ts';
import type { Problem } from '../../domain/problem/problem.ts';
import { unanswered } from '../answer.ts';
import type { App, HttpLimits } from '../app.ts';
import { problemOf, refusalHeaders, saysNothing } from '../problem-answer.ts';
import { logRequest } from '../request-log.ts';
import type { Route } from '../route.ts';
import { noParameters, type RawParameters } from '../../wire/parameters.ts';
import type { AnswersOfTurn } from './answers-of-turn.ts';
import { readParameters } from '../entry/body.ts';
import type { Connections } from '../entry/connections.ts';
import { isTarget, queryOf } from '../entry/gate.ts';
import { handleOnce, readIdempotencyKey, requestUnder } from '../entry/idempotent-request.ts';
import { jsonType, writeAnswer, type KnownRequest, type KnownRequests } from './known-request.ts';
import type { RememberedAnswers } from './remembered-answer.ts';
import { requestIdFrom } from '../entry/request-id.ts';
import { askerOf } from '../entry/waiting-requests.ts';

/** In bytes: a change names a license key and little else. All of it fits into what the system reads at once. */
const longestBody = 16 * 1024;

/** When a request began: for the metrics, and for the log. */
type Times = { begunAt: number; startedAt: number };

/**
 * What a request sends beside what is known: a verify its parameters in its target (`raw`: as they were sent), a change
 * in its body, and perhaps an idempotency key.
 */
type Sent = { raw: RawParameters; query: unknown; body: unknown; key: string | null };

/** A request that has passed every check. */
type Asked = Times & Sent & { known: KnownRequest; principal: Principal; target: string; id: string };

type Written = { status: number; headers: readonly string[]; body: string; code: Problem['code'] | null };

type Parts = {
  connections: Connections;
  routes: readonly Route[];
  requests: KnownRequests;
  remembered: RememberedAnswers;
  answers: AnswersOfTurn;
};

/**
 * Handles a request that is known: only what was sent beside its head is read, by the same rules as on its route
 * (src/http/README.md, Response cache).
 */
export class DirectRequests {
  readonly #app: App;
  readonly #limits: HttpLimits;
  readonly #parts: Parts;
  /** In bytes. */
  readonly #longestBody: number;

  constructor(app: App, limits: HttpLimits, parts: Parts) {
    this.#app = app;
    this.#limits = limits;
    this.#parts = parts;
    this.#longestBody = Math.min(limits.bodyBytes, longestBody);
  }

  /** Answers the request, or leaves it as it came to `otherwise`. */
  take(known: KnownRequest, request: IncomingMessage, response: ServerResponse, otherwise: () => void): void {
    const times = { begunAt: this.#app.metrics.begin(), startedAt: this.#app.now() };
    if (request.method !== 'GET') {
      this.#takeChange(known, request, response, { times, otherwise });
      return;
    }
    const asked = this.#check(known, request, times, null);
    if (asked === null) otherwise();
    else void this.#answer(asked, response);
  }

  /** Leaves one to `otherwise` also whose body comes in pieces, or breaks off. */
  #takeChange(
    known: KnownRequest,
    request: IncomingMessage,
    response: ServerResponse,
    { times, otherwise }: { times: Times; otherwise: () => void },
  ): void {
    const length = Number(request.rawHeaders[known.lengthAt]);
    const isShort = length > 0 && length <= this.#longestBody;
    if (!isShort) {
      otherwise();
      return;
    }
    const look = (): void => {
      request.off('readable', look).off('error', look);
      if (request.destroyed) {
        this.#miss(known, request, times);
        return;
      }
      // What is read in part would not be read to its end by a route that refuses it.
      const isWhole = request.readableLength === length;
      const asked = isWhole ? this.#takeBody(known, request, length, times) : null;
      if (asked === null) otherwise();
      else void this.#answer(asked, response);
    };
    request.on('readable', look).on('error', look);
  }

  /** Null: something is wrong, which the route finds as well; the body is where it was. */
  #takeBody(known: KnownRequest, request: IncomingMessage, length: number, times: Times): Asked | null {
    // Without the length it is one of the pieces: those of a change that had to wait have gathered meanwhile.
    const body = request.read(length) as Buffer | null;
    if (body === null) return null;
    const asked = this.#check(known, request, times, body);
    if (asked === null) request.unshift(body);
    return asked;
  }

  /** `body`: null of a verify. */
  #check(
    known: KnownRequest,
    { rawHeaders, url: target = '' }: IncomingMessage,
    times: Times,
    body: Buffer | null,
  ): Asked | null {
    const principal = this.#parts.requests.principalOf(known);
    if (principal === null) return null;
    const sent = body === null ? this.#readTarget(known, target) : this.#readChange(known, body, rawHeaders);
    // The last of the checks, since it counts: whoever is refused here is refused anew by the route.
    if (sent === null || this.#app.rates.requests.take(principal.credential) > 0) return null;
    return { ...times, ...sent, known, principal, target, id: requestIdFrom(rawHeaders[known.requestIdAt]) };
  }

  #readTarget({ route }: KnownRequest, target: string): Sent | null {
    if (!target.startsWith(`${route.path}?`) || !isTarget(target)) return null;
    try {
      const raw = queryOf(target, this.#limits);
      const query = route.query?.read(raw);
      return query?.ok === true ? { raw, query: query.values, body: null, key: null } : null;
    } catch {
      return null;
    }
  }

  #readChange(
    { route, contentType, idempotencyKeyAt }: KnownRequest,
    sent: Buffer,
    rawHeaders: readonly string[],
  ): Sent | null {
    const { parameters } = this.#limits;
    try {
      const key = readIdempotencyKey(idempotencyKeyAt === -1 ? [] : [rawHeaders[idempotencyKeyAt] ?? '']);
      const body = route.body?.read(readParameters(contentType, sent, parameters));
      return body?.ok === true ? { raw: noParameters, query: null, body: body.values, key } : null;
    } catch {
      return null;
    }
  }

  async #answer(asked: Asked, response: ServerResponse): Promise<void> {
    const { known, id, begunAt } = asked;
    const written = await this.#carryOut(asked, response);
    const { status, body } = written;
    this.#log(asked, written);
    const hangUp = saysNothing(status) ? known.hangUp : undefined;
    if (hangUp === undefined) {
      const headers = [...written.headers];
      headers[known.idAt] = id;
      response.writeHead(status, headers);
      this.#parts.answers.send({ response, body });
    } else {
      hangUp(response);
    }
    const isUnanswered = hangUp !== undefined || response.destroyed;
    this.#app.metrics.countAnswer(known.route.path, isUnanswered ? unanswered : status, begunAt);
  }

  /** The connection was lost before the body came: there is nobody to answer, and nothing that a route could read. */
  #miss(known: KnownRequest, { rawHeaders, errored }: IncomingMessage, times: Times): void {
    const id = requestIdFrom(rawHeaders[known.requestIdAt]);
    const problem = problemOf(this.#app, errored, { id, hasLeft: true });
    this.#log({ known, id, ...times }, refused(known, problem, id));
    this.#app.metrics.countAnswer(known.route.path, unanswered, times.begunAt);
  }

  #log({ known, id, startedAt }: Pick<Asked, 'known' | 'id' | 'startedAt'>, { status, code }: Written): void {
    const { method, path: route } = known.route;
    const durationMs = this.#app.now() - startedAt;
    logRequest(this.#app.log, { method, route, status, code, requestId: id, durationMs });
  }

  /** Does what is asked; never rejects. */
  async #carryOut(asked: Asked, response: ServerResponse): Promise<Written> {
    const app = this.#app;
    const { routes, remembered, connections } = this.#parts;
    const { known, principal, target, raw, query, body, key, id } = asked;
    const { route, waitMs, isAgent } = known;
    const { credential } = principal;
    const requested = [route.method, route.path, query, body] as const;
    const idempotency = key === null ? null : requestUnder(key, { credential, asked: requested }, app);
    const moment = app.memory?.moment ?? 0;
    try {
      const result = await handleOnce(route, {
        app,
        routes,
        principal,
        path: {},
        query,
        body,
        sentTo: { path: route.path, query: raw },
        writeOptions: { actor: credential, requestId: id, idempotency },
        waitMs,
        isAgent,
        signal: connections.signalFor(response, askerOf(app, route, { principal, waitMs })),
      });
      if (!result.ok) return refused(known, result.problem, id);
      const { status, repeat } = result.value;
      const answer =
        repeat === undefined
          ? writeAnswer(known, { ...result.value, type: jsonType })
          : remembered.keep(known, target, { ...result.value, repeat }, moment);
      return { status, headers: answer.headers, body: answer.body, code: null };
    } catch (error) {
      return refused(known, problemOf(app, error, { id, hasLeft: response.destroyed }), id);
    }
  }
}

function refused(known: KnownRequest, problem: Problem, id: string): Written {
  const { refusal } = known;
  const { status, body } = refusal.present(problem, id);
  const answer = { headers: refusalHeaders(problem), type: refusal.mediaType, body };
  return { status, ...writeAnswer(known, answer), code: problem.code };
}
