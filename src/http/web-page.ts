import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { App, ServerSettings } from './app.ts';
import type { Head } from './entry/request-state.ts';
import type { ProblemError } from './problem-error.ts';
import type { Route } from './route.ts';

/** Makes the problem of a request that no route matches. */
export type UnknownRoute = (request: FastifyRequest, reply: FastifyReply) => ProblemError;

/** A page for people, and its credentials. Only listeners on loopback addresses serve it (`servesPages`). */
export interface WebPage {
  /** Adds the files of the page to the server of a listener. */
  addTo(server: FastifyInstance, unknownRoute: UnknownRoute): void;
  /** Whether the page has sent a request with an `Origin`: requests of other pages are refused. */
  hasSent(head: Head, request: FastifyRequest, listener: Pick<ServerSettings, 'tls'>): boolean;
  /**
   * Lets a request with a credential of the page pass, and sets its principal. Returns whether the request has such a
   * credential; throws a problem if the credential is not for this route.
   */
  admit(app: App, route: Route, request: FastifyRequest): boolean;
}
