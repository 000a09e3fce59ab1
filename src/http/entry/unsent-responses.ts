import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** How many bytes of responses may wait for the clients of one listener. */
const maxBytes = 64 * 1024 ** 2;

/**
 * The responses of one listener that are not sent completely. Beyond a limit, the connection that has waited longest is
 * closed (src/http/README.md, Limits).
 */
export class UnsentResponses {
  /** The length of each body. The response that waits longest comes first. */
  readonly #lengths = new Map<ServerResponse, number>();
  #total = 0;

  /** Adds a response that is about to be sent. A stream is left out: it waits until its client reads. */
  add(response: ServerResponse, body: unknown): void {
    if (typeof body !== 'string' && !Buffer.isBuffer(body)) return;
    this.#lengths.set(response, body.length);
    this.#total += body.length;
    response.once('close', () => this.#delete(response));
    for (const oldest of this.#lengths.keys()) {
      if (this.#total <= maxBytes || oldest === response) return;
      this.#close(oldest.req.socket);
    }
  }

  #delete(response: ServerResponse): void {
    this.#total -= this.#lengths.get(response) ?? 0;
    this.#lengths.delete(response);
  }

  #close(socket: Duplex): void {
    for (const response of this.#lengths.keys()) if (response.req.socket === socket) this.#delete(response);
    socket.destroy();
  }
}
