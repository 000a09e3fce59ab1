import type { FastifyRequest } from 'fastify';
import type { Principal } from '../../domain/principal.ts';
import type { Head } from './head.ts';
import type { RawParameters } from '../wire/parameters.ts';

/** What the gate found out about a request, for the route. */
export type RequestState = {
  head: Head;
  query: RawParameters;
  principal: Principal | null;
  startedAt: number;
};

declare module 'fastify' {
  interface FastifyRequest {
    state: RequestState | null;
  }
}

/** The state of a request that passed the gate. */
export function stateOf({ state }: FastifyRequest): RequestState {
  if (state === null) throw new Error('a route was reached past the gate');
  return state;
}
