import type { FastifyRequest } from 'fastify';
import type { Principal } from '../../domain/access/principal.ts';
import type { Grant, SentCredential } from '../../service/access/credential.ts';
import type { Head } from './request-headers.ts';
import type { RawParameters } from '../../wire/parameters.ts';

/** What is known of a request once it has passed the gate. */
export type RequestState = {
  head: Head;
  query: RawParameters;
  principal: Principal | null;
  /** What the principal was found by; null where anyone may call. */
  grant: Grant | null;
  /** Null where none was sent. */
  sentCredential: SentCredential | null;
  /** Of the memory, before anything was read for the request. */
  moment: number;
  startedAt: number;
};

declare module 'fastify' {
  interface FastifyContextConfig {
    csvMember?: string | undefined;
  }
  interface FastifyRequest {
    state: RequestState | null;
  }
}

/** The state of a request that passed the gate. */
export function stateOf({ state }: FastifyRequest): RequestState {
  if (state === null) throw new Error('a route was reached past the gate');
  return state;
}
