import type * as Http from 'node:http';
import type { ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';

// An import statement would also load the WebSocket and fetch of Node, which takes 40 ms.
const http = createRequire(import.meta.url)('node:http') as typeof Http;

/** How many bytes of responses may wait for the clients of one listener. */
const maxBytes = 64 * 1024 ** 2;

/**
 * The responses of one listener that wait because their clients do not read. Beyond a limit, the connection that has
 * waited longest is closed (src/http/README.md, Limits).
 */
export class UnsentResponses {
  /** The response to which nothing was added for longest comes first. */
  readonly #waiting = new Set<ServerResponse>();

  follow(response: ServerResponse): void {
    if (response.writableLength === 0) return;
    // A stream writes more only after its client has read what was written before.
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

/**
 * Sends the responses of one turn of the event loop together at its end, except the first: waking a client costs more
 * than building a response, and a client that is woken for each response sleeps again before the next.
 */
class ResponseBatch {
  readonly #unsent: UnsentResponses;
  readonly #corked: { socket: Socket; response: ServerResponse }[] = [];
  #isScheduled = false;

  constructor(unsent: UnsentResponses) {
    this.#unsent = unsent;
  }

  /** Whether a response that ends now is to wait for the end of this turn. */
  get isOpen(): boolean {
    if (this.#isScheduled) return true;
    this.#isScheduled = true;
    setImmediate(() => this.#send());
    return false;
  }

  /** Call it before the response ends. */
  add(response: ServerResponse, socket: Socket): void {
    socket.cork();
    this.#corked.push({ socket, response });
  }

  #send(): void {
    this.#isScheduled = false;
    for (const { socket, response } of this.#corked.splice(0)) {
      socket.uncork();
      this.#unsent.follow(response);
    }
  }
}

type Written = Required<[chunk?: unknown, encoding?: BufferEncoding, callback?: () => void]>;

/** Makes the class of the responses of one listener. A single client does not gain from batches: it waits for each. */
export function responseClassOf(hasManyConnections: () => boolean): typeof ServerResponse {
  const unsent = new UnsentResponses();
  const batch = new ResponseBatch(unsent);
  class BatchedResponse extends http.ServerResponse {
    override write(...written: unknown[]): boolean {
      const mayGoOn = super.write(...(written as Written));
      unsent.follow(this);
      return mayGoOn;
    }

    override end(...written: unknown[]): this {
      const { socket } = this;
      if (socket === null || !hasManyConnections() || !batch.isOpen) {
        super.end(...(written as Written));
        unsent.follow(this);
      } else {
        batch.add(this, socket);
        super.end(...(written as Written));
      }
      return this;
    }
  }
  return BatchedResponse as typeof ServerResponse;
}
