import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { isOfTurn } from '../http/entry/answers-of-turn.ts';
import { isHandedOver } from '../http/entry/connections.ts';

/** The requests that are being answered, over all listeners. */
export class RequestsInFlight {
  readonly #responses = new Set<ServerResponse>();

  watch(server: Server): void {
    const begin = (_: IncomingMessage, response: ServerResponse): void => {
      if (isHandedOver(response) || isOfTurn(response)) return;
      this.#responses.add(response);
      response.once('close', () => this.#responses.delete(response));
    };
    server.on('request', begin);
    server.on('checkExpectation', begin);
  }

  /** Resolves when all that are under way now have been answered, or after `limitMs`; those that follow do not count. */
  async answered(limitMs: number): Promise<void> {
    const closed = [...this.#responses].map(
      (response) => new Promise((resolve) => response.once('close', resolve)),
    );
    const limit = new AbortController();
    const late = sleep(limitMs, undefined, { signal: limit.signal }).catch(() => undefined);
    await Promise.race([Promise.all(closed), late]);
    limit.abort();
  }
}
