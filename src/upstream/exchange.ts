import type { Dispatcher } from 'undici';
import type { Connections, ConnectionSettings } from './connections.ts';

/** Header values by lower-case name. */
type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** A complete response. */
export type CompleteResponse = { type: 'answered'; status: number; headers: Headers; text: string };

/**
 * There was no complete response. `sent` is false only if no byte of the request was written. `headers`:
 * those of a response whose body did not end; empty if there was none.
 */
export type FailedExchange = { type: 'failed'; sent: boolean; error: Error; headers: Headers };

/** The result of one request on the wire. */
export type Exchange = CompleteResponse | FailedExchange;

const maxResponseBytes = 1_048_576;

/** Why a response was not read to its end. */
export const tooLarge: Error = new Error('the response is larger than 1 MiB');

/** What ends a request before its response: an abort, or the time limit. */
type Ends = { signal: AbortSignal; timeoutMs: number };

/**
 * Sends one request and reads the whole response, up to 1 MiB; never rejects.
 *
 * An abort or the time limit ends it at once, also while it waits for a connection; a request that has not begun by
 * then is never written.
 */
function dispatch(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  ends: Ends,
): Promise<Exchange> {
  const handler = new ExchangeHandler(ends);
  if (!ends.signal.aborted) dispatcher.dispatch({ ...request, headersTimeout: 0, bodyTimeout: 0 }, handler);
  return handler.result;
}

/**
 * Collects one response. It handles undici's own events, because only they tell the moment before the first byte is
 * written: `sent` is not guessed from error codes.
 */
class ExchangeHandler implements Dispatcher.DispatchHandler {
  readonly result: Promise<Exchange>;
  readonly #resolve: (outcome: Exchange) => void;
  readonly #signal: AbortSignal;
  /** An abort signal for each request would cost more than everything else here. */
  readonly #timer: NodeJS.Timeout;
  readonly #chunks: Buffer[] = [];
  /** Set at the moment before the first byte is written. */
  #controller: Dispatcher.DispatchController | null = null;
  #settled = false;
  #bytes = 0;
  #status = 0;
  #headers: Headers = {};

  constructor({ signal, timeoutMs }: Ends) {
    const { promise, resolve } = Promise.withResolvers<Exchange>();
    this.result = promise;
    this.#resolve = resolve;
    this.#signal = signal;
    this.#timer = setTimeout(this.#onTimeout, timeoutMs);
    if (signal.aborted) this.#onAbort();
    else signal.addEventListener('abort', this.#onAbort);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // A second start would repeat the request: it must never be written.
    if (this.#settled || this.#controller !== null) controller.abort(new Error('already over'));
    else this.#controller = controller;
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: Headers): void {
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= maxResponseBytes) this.#chunks.push(chunk);
    else this.#fail(tooLarge);
  }

  onResponseEnd(): void {
    const text = new TextDecoder().decode(Buffer.concat(this.#chunks));
    this.#settle({ type: 'answered', status: this.#status, headers: this.#headers, text });
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#fail(error);
  }

  readonly #onTimeout = (): void => {
    this.#fail(
      new Error(this.#controller === null ? 'no connection in time' : 'no complete response in time'),
    );
  };

  readonly #onAbort = (): void => {
    this.#fail(new Error('aborted'));
  };

  #fail(error: Error): void {
    if (this.#settled) return;
    this.#settle({ type: 'failed', sent: this.#controller !== null, error, headers: this.#headers });
    this.#controller?.abort(error);
  }

  #settle(outcome: Exchange): void {
    this.#settled = true;
    clearTimeout(this.#timer);
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#resolve(outcome);
  }
}

/** The value of a header, the first one if there are several; null if absent. */
export function headerOf(headers: Headers, name: string): string | null {
  const value = headers[name];
  return (Array.isArray(value) ? value[0] : value) ?? null;
}

/** The result of one request, and how to stop using its connection. */
type SendResult = {
  exchange: Exchange;
  /** Lets the next request begin on a new connection. */
  discard: () => void;
};

/** Sends requests to one upstream. */
export interface Transport extends AsyncDisposable {
  /**
   * Sends one request and reads its whole response within the timeout of the settings; never repeats it, never rejects.
   * `waitMs`: for how much longer the upstream may wait for a change.
   */
  send(request: Dispatcher.DispatchOptions, signal: AbortSignal, waitMs?: number): Promise<SendResult>;
}

/** Sends requests over keep-alive connections to the base URL. The HTTP client is loaded for the first request. */
export function networkTransport(settings: ConnectionSettings): Transport {
  let opening: Promise<Connections> | null = null;
  return {
    async send(request, signal, waitMs = 0) {
      let connections: Connections;
      try {
        opening ??= open(settings);
        connections = await opening;
      } catch (error) {
        // The environment names a wrong proxy, or too many files are open: the next request tries again.
        opening = null;
        const exchange: Exchange = { type: 'failed', sent: false, error: error as Error, headers: {} };
        return { exchange, discard: () => undefined };
      }
      const { current } = connections;
      const exchange = await dispatch(current, request, { signal, timeoutMs: settings.timeoutMs + waitMs });
      return { exchange, discard: () => connections.discard(current) };
    },
    [Symbol.asyncDispose]: async () => (await opening?.catch(() => null))?.[Symbol.asyncDispose](),
  };
}

async function open(settings: ConnectionSettings): Promise<Connections> {
  const { Connections: Opened } = await import('./connections.ts');
  return new Opened(settings);
}
