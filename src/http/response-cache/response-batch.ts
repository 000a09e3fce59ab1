import type { ServerResponse } from 'node:http';

type Waiting = { response: ServerResponse; body: string };

/**
 * Sends the responses of one turn of the event loop together at its end, except the first: waking a client costs more
 * than building a response, and a client that is woken for each response sleeps again before the next.
 */
export class ResponseBatch {
  #waiting: Waiting[] = [];
  #isScheduled = false;

  /** Ends a response whose head is set, now or at the end of this turn. */
  end(response: ServerResponse, body: string): void {
    if (this.#isScheduled) {
      this.#waiting.push({ response, body });
      return;
    }
    this.#isScheduled = true;
    response.end(body);
    setImmediate(() => this.#send());
  }

  #send(): void {
    this.#isScheduled = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { response, body } of waiting) if (!response.destroyed) response.end(body);
  }
}
