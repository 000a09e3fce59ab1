import type { ServerResponse } from 'node:http';
import type { Connections } from '../entry/connections.ts';

/** The body of an answer whose head is written. */
type Waiting = { response: ServerResponse; body: string };

/**
 * The answers of the short way (src/http/README.md). Those of one turn of the event loop leave together at its end, all
 * but the first: to wake a caller takes longer than to make its answer, and one that is woken for each falls asleep
 * between them.
 */
export class AnswersOfTurn {
  readonly #connections: Connections;
  #waiting: Waiting[] = [];
  #hasBegun = false;

  constructor(connections: Connections) {
    this.#connections = connections;
  }

  /** Ends an answer, now or at the end of this turn. */
  send(answer: Waiting): void {
    // A single caller asks for nothing before it is answered.
    if (!this.#connections.areMany) {
      this.#end(answer);
    } else if (this.#hasBegun) {
      this.#waiting.push(answer);
    } else {
      this.#hasBegun = true;
      this.#end(answer);
      setImmediate(() => {
        this.#hasBegun = false;
        this.sendAll();
      });
    }
  }

  /** Ends those that wait: before anything that may close a connection. */
  sendAll(): void {
    for (const answer of this.#waiting.splice(0)) this.#end(answer);
  }

  #end({ response, body }: Waiting): void {
    // Its caller may have left meanwhile.
    if (response.destroyed) return;
    response.end(body);
    this.#connections.use(response.req.socket, response);
  }
}
