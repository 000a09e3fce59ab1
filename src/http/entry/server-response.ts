import { once } from 'node:events';
import type * as Http from 'node:http';
import type { ServerResponse } from 'node:http';
import { createRequire } from 'node:module';

// An import statement would also load the WebSocket and fetch of Node, which takes 40 ms.
const http = createRequire(import.meta.url)('node:http') as typeof Http;

/** How many bytes of responses may wait for the clients of one listener. */
const maxBytes = 64 * 1024 ** 2;

/**
 * The responses of one listener that wait because their clients do not read. Beyond a limit, the connection that has
 * waited longest is closed (src/http/entry/README.md, Connections).
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

/** Resolves when the earlier responses of the connection are sent. Stays pending if the connection ends before. */
export async function turnOf(response: ServerResponse): Promise<void> {
  if (response.socket === null) await once(response, 'socket');
}

type Written = Required<[chunk?: unknown, encoding?: BufferEncoding, callback?: () => void]>;

/**
 * Sends the responses of one turn of the event loop together at its end, except the first: waking a client costs more
 * than building a response, and a client that is woken for each response sleeps again before the next.
 */
export class ResponseBatch {
  readonly #hasManyConnections: () => boolean;
  #ends: (() => void)[] = [];
  #isScheduled = false;

  /** A single client does not gain: it waits for each response before its next request. */
  constructor(hasManyConnections: () => boolean) {
    this.#hasManyConnections = hasManyConnections;
  }

  /** Ends a response, now or at the end of this turn. */
  add(end: () => void): void {
    if (!this.#hasManyConnections()) end();
    else if (this.#isScheduled) this.#ends.push(end);
    else {
      this.#isScheduled = true;
      end();
      setImmediate(() => {
        this.#isScheduled = false;
        this.send();
      });
    }
  }

  /** Ends the waiting responses. Call it before anything that may close a connection. */
  send(): void {
    const ends = this.#ends;
    this.#ends = [];
    for (const end of ends) end();
  }
}

/** Makes the class of the responses of one listener. */
export function responseClassOf(batch: ResponseBatch): typeof ServerResponse {
  const unsent = new UnsentResponses();
  class BatchedResponse extends http.ServerResponse {
    #isEnded = false;

    override write(...written: unknown[]): boolean {
      const mayGoOn = super.write(...(written as Written));
      unsent.follow(this);
      return mayGoOn;
    }

    override end(...written: unknown[]): this {
      this.#isEnded = true;
      batch.add(() => {
        if (this.destroyed) return;
        super.end(...(written as Written));
        unsent.follow(this);
      });
      return this;
    }

    // TypeScript declares `writableEnded` as a property, which an accessor cannot override.
    static {
      Object.defineProperty(this.prototype, 'writableEnded', {
        get(this: BatchedResponse) {
          return this.#isEnded;
        },
      });
    }
  }
  return BatchedResponse as typeof ServerResponse;
}
