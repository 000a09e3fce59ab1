import type { Dispatcher } from 'undici';
import type { Connections, ConnectionSettings } from './connections.ts';
import { exchange, type Exchange } from './exchange.ts';

/** What came of one request, and how to distrust the connection that it used. */
export type Carried = {
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
