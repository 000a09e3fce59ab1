import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Principal } from '../../domain/access/principal.ts';
import type { RepeatableAnswer } from '../answer.ts';
import type { App } from '../app.ts';
import type { Memory, ReadyAnswer } from '../memory.ts';
import { presentAge } from '../provenance.ts';
import type { AnswersOfTurn } from './answers-of-turn.ts';
import {
  jsonType,
  requestIdName,
  writeAnswer,
  type KnownRequest,
  type KnownRequests,
} from './known-request.ts';
import { requestIdFrom } from '../entry/request-id.ts';

/**
 * Answers a verify that is known without waiting for anything: what was asked before from memory, another license key
 * by a read alone (src/http/README.md, Response cache).
 */
export class RememberedAnswers {
  readonly #app: App;
  readonly #requests: KnownRequests;
  readonly #answers: AnswersOfTurn;

  constructor(app: App, requests: KnownRequests, answers: AnswersOfTurn) {
    this.#app = app;
    this.#requests = requests;
    this.#answers = answers;
  }

  /** Sends the answer to a request that is known, or does nothing and gives false. */
  send(known: KnownRequest, request: IncomingMessage, response: ServerResponse): boolean {
    const app = this.#app;
    const { memory } = app;
    if (memory === null || request.method !== 'GET') return false;
    const begunAt = app.metrics.begin();
    const at = app.now();
    const principal = this.#requests.principalOf(known);
    if (principal === null) return false;
    const { url = '' } = request;
    const ready =
      memory.answerTo(questionOf(known, url), at) ?? this.#answerAnew(memory, known, principal, url);
    if (ready === null) return false;
    // The last of the checks, since it counts: whoever is refused here is refused anew by the route.
    if (app.rates.requests.take(principal.credential) > 0) return false;
    const id = requestIdFrom(request.rawHeaders[known.requestIdAt]);
    response.writeHead(200, headersAt(ready, id, at));
    this.#answers.send({ response, body: ready.body });
    ready.repeat.repeated();
    app.metrics.countAnswer(known.route.path, 200, begunAt);
    return true;
  }

  #answerAnew(memory: Memory, known: KnownRequest, principal: Principal, target: string): ReadyAnswer | null {
    try {
      const answer = known.route.answerAtOnce?.(this.#app, principal, target);
      if (answer?.repeat === undefined) return null;
      return this.keep(known, target, { ...answer, repeat: answer.repeat }, memory.moment);
    } catch {
      // The route meets the same fault of the store, and says so.
      return null;
    }
  }

  /** Writes an answer that was read after a moment of the memory, and remembers it. */
  keep(known: KnownRequest, target: string, answer: RepeatableAnswer, moment: number): ReadyAnswer {
    const { headers, body, repeat } = answer;
    const ready = { ...writeAnswer(known, { headers, type: jsonType, body }), repeat };
    this.#app.memory?.keep(questionOf(known, target), ready, moment);
    return ready;
  }
}

function questionOf({ asker }: KnownRequest, target: string): string {
  return `${asker} ${target}`;
}

/** The headers of an answer as they are at an instant (`Clock.now`), under the id of its request. */
function headersAt({ headers, repeat }: ReadyAnswer, id: string, now: number): string[] {
  const sent = [...headers];
  for (let index = 0; index < sent.length; index += 2) {
    if (sent[index] === requestIdName) sent[index + 1] = id;
    else if (sent[index] === 'age' && repeat.confirmedAt !== null)
      sent[index + 1] = presentAge(now - repeat.confirmedAt);
  }
  return sent;
}
