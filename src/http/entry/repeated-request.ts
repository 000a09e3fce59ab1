import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';
import { requestIdHeader } from '../../domain/header-names.ts';
import type { Grant } from '../../service/access/credential.ts';
import type { RepeatableAnswer } from '../answer.ts';
import type { App, Readiness, ServerSettings } from '../app.ts';
import type { Memory, ReadyAnswer } from '../memory.ts';
import { presentAge } from '../provenance.ts';
import type { Route } from '../route.ts';
import { requestIdFrom } from './request-id.ts';
import { stateOf, type RequestState } from './request-state.ts';

const requestId = requestIdHeader.toLowerCase();
export const jsonType = 'application/json; charset=utf-8';

/** What differs from request to request, and decides nothing of the answer but its `X-Request-Id`. */
const variable = new Set([requestId, 'traceparent', 'tracestate']);

/** In these, a request is refused by its route, or its answer ends the connection. */
const unrepeated: ReadonlySet<Readiness['state']> = new Set(['starting', 'leaving', 'draining']);

/** The head of a request that was answered on a connection, and what of it decides the answer. */
type KnownHead = {
  rawHeaders: readonly string[];
  /** Where in `rawHeaders` the values are that may be others. */
  variableAt: readonly number[];
  /** Where the caller's own id of the request is; -1: it sends none. */
  requestIdAt: number;
  route: Route;
  grant: Grant;
  /** Of the memory, before the grant was found. */
  moment: number;
  /** Whose license keys are asked for, and the page that asks: all that the answer takes from the head. */
  asker: string;
  /** The headers of the answer that are the same for all license keys. */
  headers: readonly string[];
};

/**
 * Answers a GET that has the head of one before on its connection: no gate, no route and no handler would find
 * anything else in it. What was asked before is answered from memory, another license key by a read alone
 * (src/http/README.md, Answers from memory).
 */
export class RepeatedRequests {
  readonly #app: App;
  readonly #credentialNames: ReadonlySet<string>;
  /** What each connection sent last; it goes with the connection, and so do the secrets in it. */
  readonly #heads = new WeakMap<Socket, KnownHead>();

  constructor(app: App, { apiKey, productSecret }: ServerSettings['headerAliases']) {
    this.#app = app;
    this.#credentialNames = new Set([...apiKey, ...productSecret]);
  }

  /** Sends the answer, or does nothing and gives false. */
  answer(request: IncomingMessage, response: ServerResponse): boolean {
    const app = this.#app;
    const { memory } = app;
    const head = this.#heads.get(request.socket);
    if (memory === null || head === undefined || request.method !== 'GET' || request.httpVersion !== '1.1')
      return false;
    if (!hasHead(head, request.rawHeaders)) return false;
    const begunAt = app.metrics.begin();
    const at = app.now();
    if (unrepeated.has(app.readiness().state) || !memory.credentialsHoldSince(head.moment)) return false;
    const principal = app.credentials.use(head.grant);
    if (principal === null || principal === 'expired') return false;
    const { url = '' } = request;
    const ready = memory.answerTo(questionOf(head, url), at) ?? this.#answerAnew(memory, head, url);
    if (ready === null) return false;
    // The last of the checks, since it counts: whoever is refused here is refused anew by the route.
    if (app.rates.requests.take(principal.credential) > 0) return false;
    const id = requestIdFrom(request.rawHeaders[head.requestIdAt]);
    response.writeHead(200, headersAt(ready, id, at));
    response.end(ready.body);
    ready.repeat.repeated();
    app.metrics.countAnswer(head.route.path, 200, begunAt);
    return true;
  }

  #answerAnew(memory: Memory, head: KnownHead, target: string): ReadyAnswer | null {
    try {
      const answer = head.route.answerAtOnce?.(this.#app, head.grant.principal, target);
      if (answer?.repeat === undefined) return null;
      const ready = readyAnswer(head.headers, { ...answer, repeat: answer.repeat });
      memory.keep(questionOf(head, target), ready, memory.moment);
      return ready;
    } catch {
      // The route meets the same fault of the store, and says so.
      return null;
    }
  }

  /** Writes an answer, and remembers it; `reply` has the headers that are the same for all license keys. */
  keep(route: Route, reply: FastifyReply, answer: RepeatableAnswer): ReadyAnswer {
    const { memory } = this.#app;
    const { raw } = reply.request;
    const headers = Object.entries(reply.getHeaders()).flatMap(([name, value]) => [name, String(value)]);
    const ready = readyAnswer(headers, answer);
    if (memory === null || !isRepeatable(raw)) return ready;
    const state = stateOf(reply.request);
    const before = this.#heads.get(raw.socket);
    const isSame =
      before?.route === route &&
      memory.credentialsHoldSince(before.moment) &&
      hasHead(before, raw.rawHeaders);
    const head = isSame ? before : this.#headOf(route, raw.rawHeaders, state, headers);
    if (head === null) return ready;
    this.#heads.set(raw.socket, head);
    memory.keep(questionOf(head, raw.url ?? ''), ready, state.moment);
    return ready;
  }

  #headOf(
    route: Route,
    rawHeaders: readonly string[],
    { grant, moment, head }: RequestState,
    headers: readonly string[],
  ): KnownHead | null {
    if (grant === null) return null;
    const names = rawHeaders.map((name, index) => (index % 2 === 0 ? name.toLowerCase() : ''));
    const variableAt = [...names.keys()].filter((index) => this.#isVariable(names[index] ?? ''));
    const requestIdAt = names.indexOf(requestId);
    const { accountId, productKey } = grant.principal.reach;
    return {
      rawHeaders,
      variableAt: variableAt.map((index) => index + 1),
      requestIdAt: requestIdAt === -1 ? -1 : requestIdAt + 1,
      route,
      grant,
      moment,
      asker: JSON.stringify([route.path, accountId, productKey, head.origin]),
      headers,
    };
  }

  #isVariable(name: string): boolean {
    return variable.has(name) && !this.#credentialNames.has(name);
  }
}

/** Whether another request with the same head is the same request. */
function isRepeatable({ method, httpVersion, rawHeaders }: IncomingMessage): boolean {
  const ids = rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === requestId);
  return method === 'GET' && httpVersion === '1.1' && ids.length <= 1;
}

function hasHead({ rawHeaders: known, variableAt }: KnownHead, sent: readonly string[]): boolean {
  if (sent.length !== known.length) return false;
  for (let index = 0; index < sent.length; index += 1) {
    if (sent[index] !== known[index] && !variableAt.includes(index)) return false;
  }
  return true;
}

function questionOf({ asker }: KnownHead, target: string): string {
  return `${asker} ${target}`;
}

/** Writes an answer out: the headers that others have too, then its own. */
function readyAnswer(common: readonly string[], { headers, body, repeat }: RepeatableAnswer): ReadyAnswer {
  const written = JSON.stringify(body);
  const own = Object.entries(headers).flatMap(([name, value]) => [name.toLowerCase(), value]);
  const content = ['content-type', jsonType, 'content-length', String(Buffer.byteLength(written))];
  return { headers: [...common, ...own, ...content], body: written, repeat };
}

/** The headers of an answer as they are at an instant (`Clock.now`), under the id of its request. */
function headersAt({ headers, repeat }: ReadyAnswer, id: string, now: number): string[] {
  const sent = [...headers];
  for (let index = 0; index < sent.length; index += 2) {
    if (sent[index] === requestId) sent[index + 1] = id;
    else if (sent[index] === 'age' && repeat.confirmedAt !== null)
      sent[index + 1] = presentAge(now - repeat.confirmedAt);
  }
  return sent;
}
