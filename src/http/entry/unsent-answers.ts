import type * as Http from 'node:http';
import type { ServerResponse } from 'node:http';
import { createRequire } from 'node:module';

// An import statement would also load the WebSocket and fetch of Node, which takes 40 ms.
const http = createRequire(import.meta.url)('node:http') as typeof Http;

/** How many bytes of answers may wait for the callers of one listener. */
const maxBytes = 64 * 1024 ** 2;

/**
 * The answers of one listener that wait because their callers do not take them. Beyond a bound the connection is closed
 * whose answer has waited for longest (src/http/README.md, Limits).
 */
export class UnsentAnswers {
  /** The one to which nothing was added for longest comes first. */
  readonly #waiting = new Set<ServerResponse>();

  /** A class of responses that are followed here. */
  readonly responseClass: typeof ServerResponse = followed((response) => this.#follow(response));

  #follow(response: ServerResponse): void {
    // A stream writes more only once its caller has taken what was written before.
    if (!this.#waiting.delete(response)) response.once('close', () => this.#waiting.delete(response));
    this.#waiting.add(response);
    while (this.#bytes() > maxBytes) {
      const [oldest = response] = this.#waiting;
      if (oldest === response) return;
      this.#close(oldest);
    }
  }

  #bytes(): number {
    let bytes = 0;
    for (const { writableLength } of this.#waiting) bytes += writableLength;
    return bytes;
  }

  #close({ req: { socket } }: ServerResponse): void {
    for (const each of this.#waiting) if (each.req.socket === socket) this.#waiting.delete(each);
    socket.destroy();
  }
}

type Written = [chunk?: unknown, encoding?: BufferEncoding, callback?: () => void];

/** Makes a class of responses that calls `follow` when something was written that the system has not taken. */
function followed(follow: (response: ServerResponse) => void): typeof ServerResponse {
  class FollowedResponse extends http.ServerResponse {
    override write(...written: unknown[]): boolean {
      const mayGoOn = super.write(...(written as Required<Written>));
      if (this.writableLength > 0) follow(this);
      return mayGoOn;
    }

    override end(...written: unknown[]): this {
      super.end(...(written as Required<Written>));
      if (this.writableLength > 0) follow(this);
      return this;
    }
  }
  return FollowedResponse as typeof ServerResponse;
}
