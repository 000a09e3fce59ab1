import type { FastifyRequest } from 'fastify';
import type { Grant } from '../../domain/grant.ts';
import type { Head } from './head.ts';
import type { RawParameters } from '../wire/parameters.ts';

/** What the gate found out about a request, for the route. */
export type Visit = { head: Head; query: RawParameters; grant: Grant | null; startedAt: number };

declare module 'fastify' {
  interface FastifyRequest {
    visit: Visit | null;
  }
}

/** The visit of a request that passed the gate. */
export function visitOf({ visit }: FastifyRequest): Visit {
  if (visit === null) throw new Error('a route was reached past the gate');
  return visit;
}
