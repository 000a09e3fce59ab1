import type { Dispatcher } from 'undici';
import type { Connections, ConnectionSettings } from './connections.ts';

/** Header values by lower-case name. */
type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** A whole answer, whatever it says. */
export type Answered = { type: 'answered'; status: number; headers: Headers; text: string };

/**
 * No whole answer came. `sent`: bytes of the request may have left; when false, certainly none did. `headers`: of an
 * answer whose body did not end; empty when there was none.
 */
export type Failed = { type: 'failed'; sent: boolean; error: Error; headers: Headers };

/** What came of one request on the wire. */
export type Exchange = Answered | Failed;

const maximumAnswerBytes = 1_048_576;

/** Why an answer was not read to its end. */
export const tooLarge: Error = new Error('the answer is larger than 1 MiB');

/** What ends a request before its answer: somebody's wish, or the time that it may take in all. */
type Ends = { signal: AbortSignal; timeoutMs: number };

/**
 * Makes one request and reads its whole answer, up to 1 MiB; never rejects.
 *
 * What ends it does so at once, also while it waits for a connection, and a request that has not begun by
 * then is never written.
 */
function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  ends: Ends,
): Promise<Exchange> {
  const handler = new ExchangeHandler(ends);
  if (!ends.signal.aborted) dispatcher.dispatch({ ...request, headersTimeout: 0, bodyTimeout: 0 }, handler);
  return handler.result;
}

/**
 * Collects one answer. It takes undici's events itself, because only they tell the moment before the first
 * byte is written: `sent` is knowledge, not a guess from error codes.
 */
class ExchangeHandler implements Dispatcher.DispatchHandler {
  readonly result: Promise<Exchange>;
  readonly #resolve: (outcome: Exchange) => void;
  readonly #signal: AbortSignal;
  /** A signal of its own for each request would cost more than all else here. */
  readonly #timer: NodeJS.Timeout;
  readonly #chunks: Buffer[] = [];
  /** Stands from the moment before the first byte is written. */
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
    // A second start would be a repetition: it must never be written.
    if (this.#settled || this.#controller !== null) controller.abort(new Error('already over'));
    else this.#controller = controller;
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: Headers): void {
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= maximumAnswerBytes) this.#chunks.push(chunk);
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
    this.#fail(new Error(this.#controller === null ? 'no connection in time' : 'no whole answer in time'));
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

/** The header's value, the first one where it was sent more than once; null when absent. */
export function headerOf(headers: Headers, name: string): string | null {
  const value = headers[name];
  return (Array.isArray(value) ? value[0] : value) ?? null;
}

/** What came of one request, and how to distrust the connection that it used. */
type Carried = {
  came: Exchange;
  /** Lets the next request begin on a new connection. */
  leave: () => void;
};

/** Carries requests to one upstream. */
export interface Transport extends AsyncDisposable {
  /** Makes one request and reads its whole answer within the timeout; never repeats it, never rejects. */
  send(request: Dispatcher.DispatchOptions, signal: AbortSignal): Promise<Carried>;
}

/** Carries requests over keep-alive connections to the base URL; what makes them is loaded for the first request. */
export function networkTransport(settings: ConnectionSettings): Transport {
  let opening: Promise<Connections> | null = null;
  return {
    async send(request, signal) {
      let connections: Connections;
      try {
        opening ??= open(settings);
        connections = await opening;
      } catch (error) {
        // The environment names a wrong proxy, or there are too many open files: the next request tries again.
        opening = null;
        const came: Exchange = { type: 'failed', sent: false, error: error as Error, headers: {} };
        return { came, leave: () => undefined };
      }
      const { current } = connections;
      const came = await exchange(current, request, { signal, timeoutMs: settings.timeoutMs });
      return { came, leave: () => connections.leave(current) };
    },
    [Symbol.asyncDispose]: async () => (await opening?.catch(() => null))?.[Symbol.asyncDispose](),
  };
}

async function open(settings: ConnectionSettings): Promise<Connections> {
  const { Connections: Opened } = await import('./connections.ts');
  return new Opened(settings);
}
