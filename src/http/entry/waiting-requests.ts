import type { ServerResponse } from 'node:http';
import type { Principal } from '../../domain/access/principal.ts';
import type { App } from '../app.ts';
import { ProblemError } from '../problem-error.ts';
import type { Route } from '../route.ts';

const longestWaitS = 30;

/** Reads `Prefer: wait=N` (RFC 7240) as ms, 30 s at most; 0 when absent or malformed. */
export function readWait(prefer: readonly string[]): number {
  for (const preference of prefer.flatMap((value) => value.split(','))) {
    const seconds = /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;.*)?$/i.exec(preference)?.[1];
    if (seconds !== undefined) return Math.min(Number(seconds), longestWaitS) * 1000;
  }
  return 0;
}

type Waiting = { response: ServerResponse; controller: AbortController; prefersToWait: boolean };

/** Who asks, and for how long the caller wants to wait for the upstream (`Prefer: wait`), in ms. */
export type Requester = { credential: string; waitMs: number };

/** Null: the request does not wait for the upstream. An authority has none, and what only the operator may do is work. */
export function requesterOf(
  { role }: Pick<App, 'role'>,
  { operatorOnly }: Pick<Route, 'operatorOnly'>,
  { principal, waitMs }: { principal: Principal | null; waitMs: number },
): Requester | null {
  if (role !== 'agent' || principal === null || operatorOnly === true) return null;
  return { credential: principal.credential, waitMs };
}

/**
 * The requests of one listener that may wait for the upstream, by the credential that asks. One whose place is needed is
 * answered at once, as if its wait had ended (src/http/README.md, Limits).
 */
export class WaitingRequests {
  /** How many requests of one credential may wait because their callers prefer that. */
  readonly #maxPreferred: number;
  /** The oldest of each credential comes first. */
  readonly #ofCredential = new Map<string, Set<Waiting>>();

  constructor(connections: number) {
    this.#maxPreferred = Math.max(1, Math.floor(connections / 2));
  }

  /** Follows a request until it is answered. The signal aborts when its caller leaves, or its wait is to end. */
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
   * Ends the oldest wait of the credential that has most, with all others on its connection. Gives the response behind
   * which the connection can be closed; undefined: no request waits.
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
  // A change that is recorded is answered as it stands; what needed the upstream's answer is refused with this.
  const detail = 'Another caller needed the place of this connection before the upstream answered.';
  waiting.controller.abort(new ProblemError('upstream_unreachable', detail, { retryAfterS: 1 }));
}

/** A signal that aborts when the caller disconnects before the answer; fastify's own also aborts once the body was read. */
export function departure(response: ServerResponse): AbortSignal {
  const leaving = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) leaving.abort();
  });
  return leaving.signal;
}
