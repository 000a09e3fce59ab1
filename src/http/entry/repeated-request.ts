import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { requestIdHeader } from '../../domain/header-names.ts';
import type { Grant } from '../../service/access/credential.ts';
import type { RepeatedLicense } from '../answer.ts';
import type { App, ServerSettings } from '../app.ts';
import type { ReadyAnswer } from '../memory.ts';
import { presentAge } from '../provenance.ts';
import { requestIdFrom } from './request-id.ts';
import { stateOf } from './request-state.ts';

const requestId = requestIdHeader.toLowerCase();

/** What differs from request to request, and decides nothing of the answer but its `X-Request-Id`. */
const variable = new Set([requestId, 'traceparent', 'tracestate']);

/** The head of a request that was answered on a connection, and what of it decides the answer. */
type KnownHead = {
  rawHeaders: readonly string[];
  /** Where in `rawHeaders` the values are that may be others. */
  variableAt: readonly number[];
  /** Where the caller's own id of the request is; -1: it sends none. */
  requestIdAt: number;
  /** The pattern of the route that was asked. */
  route: string;
  grant: Grant;
  /** Of the memory, before the grant was found. */
  moment: number;
  /** Whose license keys are asked for, and the page that asks: all that the answer takes from the head. */
  asker: string;
};

type RepeatedApp = Pick<App, 'memory' | 'readiness' | 'credentials' | 'rates' | 'now' | 'metrics'>;

/**
 * Answers a GET that has the head of the one before on its connection, and asks for what was asked before, from
 * memory: no gate, no route and no handler would find anything else in it (src/http/README.md, Answers from memory).
 */
export class RepeatedRequests {
  readonly #app: RepeatedApp;
  readonly #credentialNames: ReadonlySet<string>;
  /** What each connection sent last; it goes with the connection, and so do the secrets in it. */
  readonly #heads = new WeakMap<Socket, KnownHead>();

  constructor(app: RepeatedApp, { apiKey, productSecret }: ServerSettings['headerAliases']) {
    this.#app = app;
    this.#credentialNames = new Set([...apiKey, ...productSecret]);
  }

  /** Sends the answer, or does nothing and gives false. */
  answer(request: IncomingMessage, response: ServerResponse): boolean {
    const { memory, readiness, credentials, rates, now, metrics } = this.#app;
    const head = this.#heads.get(request.socket);
    if (memory === null || head === undefined || request.method !== 'GET' || request.httpVersion !== '1.1')
      return false;
    if (!hasHead(head, request.rawHeaders)) return false;
    const begunAt = metrics.begin();
    const at = now();
    const ready = memory.hasCredentialsOf(head.moment)
      ? memory.answerTo(questionOf(head, request.url), at)
      : null;
    const { state } = readiness();
    if (ready === null || state === 'starting' || state === 'draining') return false;
    const principal = credentials.use(head.grant);
    if (principal === null || principal === 'expired') return false;
    // The last of the checks, since it counts: whoever is refused here is refused anew by the route.
    if (rates.requests.take(principal.credential) > 0) return false;
    const id = requestIdFrom(request.rawHeaders[head.requestIdAt]);
    response.writeHead(200, headersAt(ready, id, at));
    response.end(ready.body);
    ready.repeat.repeated();
    metrics.countAnswer(head.route, 200, begunAt);
    return true;
  }

  /** Remembers an answer that is about to be sent. */
  keep(reply: FastifyReply, body: string, repeat: RepeatedLicense): void {
    const { memory } = this.#app;
    const { request } = reply;
    const { raw } = request;
    const { moment } = stateOf(request);
    if (memory === null || !isRepeatable(raw)) return;
    const head = this.#headOf(request);
    if (head === null) return;
    this.#heads.set(raw.socket, head);
    const headers = Object.entries(reply.getHeaders()).flatMap(([name, value]) => [name, String(value)]);
    memory.keep(questionOf(head, raw.url), { headers, body, repeat }, moment);
  }

  #headOf(request: FastifyRequest): KnownHead | null {
    const { grant, moment, head } = stateOf(request);
    const { rawHeaders, socket } = request.raw;
    const route = request.routeOptions.url ?? '';
    const before = this.#heads.get(socket);
    if (before?.route === route && before.moment === moment && hasHead(before, rawHeaders)) return before;
    if (grant === null) return null;
    const names = rawHeaders.map((name, index) => (index % 2 === 0 ? name.toLowerCase() : null));
    const variableAt = [...names.keys()]
      .filter((index) => this.#isVariable(names[index] ?? ''))
      .map((index) => index + 1);
    const requestIdAt = names.indexOf(requestId) + 1;
    const { accountId, productKey } = grant.principal.reach;
    return {
      rawHeaders,
      variableAt,
      requestIdAt: requestIdAt === 0 ? -1 : requestIdAt,
      route,
      grant,
      moment,
      asker: JSON.stringify([route, accountId, productKey, head.origin]),
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

function questionOf({ asker }: KnownHead, target: string | undefined): string {
  return `${asker} ${target ?? ''}`;
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
