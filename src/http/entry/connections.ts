import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/**
 * The connections of one listener (src/http/README.md, Limits). A connection is idle while none of its requests
 * is being answered. When there are `maximum`, a new one replaces the one that has been idle for longest; where
 * none is idle, the new one is closed.
 */
export class Connections {
  readonly #maximum: number;
  /** Those idle for longest come first. */
  readonly #idle = new Set<Duplex>();
  /** The unanswered requests of each connection that is not idle, in order. */
  readonly #busy = new Map<Duplex, Set<ServerResponse>>();

  constructor(maximum: number) {
    this.#maximum = maximum;
  }

  /** Follows the connections and requests of a server; call before it listens. */
  watch(server: Server): void {
    const begin = ({ socket }: IncomingMessage, response: ServerResponse): void => {
      this.#begin(socket, response);
    };
    server.on('connection', (socket) => this.#open(socket));
    server.prependListener('request', begin);
    server.prependListener('checkExpectation', begin);
  }

  /** The requests of a connection that are not answered yet, in order. */
  unanswered(socket: Duplex): readonly ServerResponse[] {
    return [...(this.#busy.get(socket) ?? [])];
  }

  #open(socket: Duplex): void {
    if (this.#idle.size + this.#busy.size >= this.#maximum) {
      const [longestIdle] = this.#idle;
      if (longestIdle === undefined) {
        socket.destroy();
        return;
      }
      this.#idle.delete(longestIdle);
      longestIdle.destroy();
    }
    this.#idle.add(socket);
    socket.once('close', () => {
      this.#idle.delete(socket);
      this.#busy.delete(socket);
    });
  }

  #begin(socket: Duplex, response: ServerResponse): void {
    const unanswered = this.#busy.get(socket) ?? new Set();
    this.#busy.set(socket, unanswered.add(response));
    this.#idle.delete(socket);
    response.once('close', () => {
      unanswered.delete(response);
      if (unanswered.size > 0) return;
      this.#busy.delete(socket);
      if (!socket.destroyed) this.#idle.add(socket);
    });
  }
}
