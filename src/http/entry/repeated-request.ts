import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';
import type { Grant } from '../../service/access/credential.ts';
import type { RepeatableAnswer } from '../answer.ts';
import type { App, ServerSettings } from '../app.ts';
import type { Memory, ReadyAnswer } from '../memory.ts';
import { presentAge } from '../provenance.ts';
import type { Route } from '../route.ts';
import type { AnswersOfTurn } from './answers-of-turn.ts';
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
import { requestIdFrom } from './request-id.ts';
import { stateOf, type RequestState } from './request-state.ts';

export const jsonType = 'application/json; charset=utf-8';

/** The head of a request that was answered on a connection, and what of it decides the answer. */
type KnownRequest = KnownHead & {
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
  readonly #mayDiffer: ReadonlySet<string>;
  /** What each connection sent last; it goes with the connection, and so do the secrets in it. */
  readonly #heads = new WeakMap<Socket, KnownRequest>();

  readonly #answers: AnswersOfTurn;

  constructor(app: App, names: ServerSettings['headerAliases'], answers: AnswersOfTurn) {
    this.#app = app;
    this.#mayDiffer = variableNames(names);
    this.#answers = answers;
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
    this.#answers.send({ response, body: ready.body });
    ready.repeat.repeated();
    app.metrics.countAnswer(head.route.path, 200, begunAt);
    return true;
  }

  #answerAnew(memory: Memory, head: KnownRequest, target: string): ReadyAnswer | null {
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
    const headers = writtenOut(reply.getHeaders());
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
  ): KnownRequest | null {
    if (grant === null) return null;
    const { accountId, productKey } = grant.principal.reach;
    return {
      ...knownHead(rawHeaders, this.#mayDiffer),
      route,
      grant,
      moment,
      asker: JSON.stringify([route.path, accountId, productKey, head.origin]),
      headers,
    };
  }
}

/** Whether another request with the same head is the same request. */
function isRepeatable({ method, httpVersion, rawHeaders }: IncomingMessage): boolean {
  return method === 'GET' && httpVersion === '1.1' && timesSent(rawHeaders, requestId) <= 1;
}

function questionOf({ asker }: KnownRequest, target: string): string {
  return `${asker} ${target}`;
}

/** Writes an answer out: the headers that others have too, then its own. */
function readyAnswer(common: readonly string[], { headers, body, repeat }: RepeatableAnswer): ReadyAnswer {
  const written = JSON.stringify(body);
  const own = writtenOut(headers);
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
