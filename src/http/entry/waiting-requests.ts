import type { ServerResponse } from 'node:http';
import type { Principal } from '../../domain/access/principal.ts';
import type { App } from '../app.ts';
import { ProblemError } from '../problem-error.ts';
import type { Route } from '../route.ts';

const longestWaitS = 30;

/** Reads `Prefer: wait=N` (RFC 7240) as ms, at most 30 s; 0 if it is missing or malformed. */
export function readWait(prefer: readonly string[]): number {
  for (const preference of prefer.flatMap((value) => value.split(','))) {
    const seconds = /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;.*)?$/i.exec(preference)?.[1];
    if (seconds !== undefined) return Math.min(Number(seconds), longestWaitS) * 1000;
  }
  return 0;
}

type Waiting = { response: ServerResponse; controller: AbortController; prefersToWait: boolean };

/** The credential of a request, and how many ms the caller wants to wait for the upstream (`Prefer: wait`). */
export type Requester = { credential: string; waitMs: number };

/**
 * Null: the request does not count as waiting for the upstream. An authority has no upstream, and a request to a route
 * for operators only counts as work.
 */
export function requesterOf(
  { role }: Pick<App, 'role'>,
  { operatorOnly }: Pick<Route, 'operatorOnly'>,
  { principal, waitMs }: { principal: Principal | null; waitMs: number },
): Requester | null {
  if (role !== 'agent' || principal === null || operatorOnly === true) return null;
  return { credential: principal.credential, waitMs };
}

/**
 * The requests of one listener that may wait for the upstream, by their credential. If the place of such a request is
 * needed, it is answered at once, as if its wait had ended (src/http/README.md, Limits).
 */
export class WaitingRequests {
  /** How many requests of one credential may wait because their callers prefer that. */
  readonly #maxPreferred: number;
  /** The oldest request of each credential comes first. */
  readonly #ofCredential = new Map<string, Set<Waiting>>();

  constructor(connections: number) {
    this.#maxPreferred = Math.max(1, Math.floor(connections / 2));
  }

  /** Tracks a request until it is answered. The signal aborts if the client disconnects or the wait must end. */
  begin(response: ServerResponse, { credential, waitMs }: Requester): AbortSignal {
    const controller = new AbortController();
    const waiting: Waiting = { response, controller, prefersToWait: waitMs > 0 };
    const ofCredential = this.#ofCredential.get(credential) ?? new Set<Waiting>();
    this.#ofCredential.set(credential, ofCredential.add(waiting));
    response.once('close', () => {
      ofCredential.delete(waiting);
      if (ofCredential.size === 0 && this.#ofCredential.get(credential) === ofCredential) {
        this.#ofCredential.delete(credential);
      }
      if (!response.writableFinished) controller.abort();
    });
    if (waiting.prefersToWait) this.#limitPreferred(ofCredential);
    return controller.signal;
  }

  /**
   * Ends the oldest wait of the credential with the most waiting requests, and all waits of the credential on the same
   * connection. Returns the last of their responses, after which the connection can be closed; undefined: no request
   * waits.
   */
  endOne(): ServerResponse | undefined {
    let most = new Set<Waiting>();
    for (const each of this.#ofCredential.values()) if (each.size > most.size) most = each;
    const [oldest] = most;
    if (oldest === undefined) return undefined;
    const { socket } = oldest.response.req;
    const ofConnection = [...most].filter(({ response }) => response.req.socket === socket);
    for (const waiting of ofConnection) end(most, waiting);
    return ofConnection.at(-1)?.response;
  }

  #limitPreferred(ofCredential: Set<Waiting>): void {
    const preferred = [...ofCredential].filter(({ prefersToWait }) => prefersToWait);
    const [oldest] = preferred;
    if (oldest !== undefined && preferred.length > this.#maxPreferred) end(ofCredential, oldest);
  }
}

function end(ofCredential: Set<Waiting>, waiting: Waiting): void {
  ofCredential.delete(waiting);
  // A recorded change is answered as it is now. A request that needs the upstream's response gets this problem.
  const detail = 'Another caller needed the place of this connection before the upstream answered.';
  waiting.controller.abort(new ProblemError('upstream_unreachable', detail, { retryAfterS: 1 }));
}

/** Aborts if the client disconnects before the response. Fastify's own signal also aborts after the body is read. */
export function departure(response: ServerResponse): AbortSignal {
  const leaving = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) leaving.abort();
  });
  return leaving.signal;
}
