import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { App, ServerSettings } from './app.ts';
import type { Head } from './entry/request-state.ts';
import type { ProblemError } from './problem-error.ts';
import type { Route } from './route.ts';

/** Makes the problem of a request that no route matches. */
export type UnknownRoute = (request: FastifyRequest, reply: FastifyReply) => ProblemError;

/** What a page gets from the listener that serves it. */
export type PageHost = { app: App; listener: ServerSettings; unknownRoute: UnknownRoute };

/** A page for people, and its credentials. */
export interface WebPage {
  isServedAt(listener: Pick<ServerSettings, 'servesPages' | 'public'>): boolean;
  /** Adds the routes of the page to the server of a listener. */
  addTo(server: FastifyInstance, host: PageHost): void;
  /** Whether a request with an `Origin` or a `Referer` is for the page: requests of other pages are refused. */
  hasSent(head: Head, request: FastifyRequest, listener: Pick<ServerSettings, 'tls'>): boolean;
  /**
   * Lets a request with a credential of the page pass, and sets its principal. Returns whether the request has such a
   * credential; throws a problem if the credential is not for this route.
   */
  admit(app: App, route: Route, request: FastifyRequest): boolean;
}
