import type { z } from 'zod';
import type { Principal } from '../domain/principal.ts';
import type { ParameterFault, Result } from '../domain/problem.ts';
import type { WriteOptions } from '../service/ports.ts';
import type { Answer } from './answer.ts';
import type { Access } from './entry/credential.ts';
import type { App } from './app.ts';
import type { ParameterSet, RawParameters } from './wire/parameters.ts';

/** One request as a handler sees it: admitted, and read. */
export type RouteRequest<Path extends string, HasPrincipal, Query, Body> = {
  app: App;
  /** Of the credential; null only where anyone may call. */
  principal: HasPrincipal;
  /** The path's own parameters. */
  path: Readonly<Record<PathNames<Path>, string>>;
  query: Query;
  body: Body;
  /** Where the request was sent, for links: the path, and the query as sent. */
  sentTo: { path: string; query: RawParameters };
  /** For the writer: on whose behalf it writes. */
  writeOptions: WriteOptions;
  /** `Prefer: wait`, in ms. */
  waitMs: number;
  /** Aborts when the caller goes away. */
  signal: AbortSignal;
  routes: readonly Route[];
};

type PathNames<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | PathNames<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** All of a route but what its handler is given. */
type RouteFacts = {
  method: Method;
  /** With parameters as `:name`. */
  path: string;
  summary: string;
  access: Access;
  /** When true, anyone may call after all; the handler is given no principal then. */
  isOpen?(app: App): boolean;
  /** An agent answers 409: the catalogue lives upstream. */
  authorityOnly?: boolean;
  /** Its answer carries a new secret, so that it is never stored under an idempotency key. */
  answersSecret?: boolean;
  /** Answered also while starting and draining. */
  always?: boolean;
  /** The schema of the body of each success, by status; null: no body. */
  answers: Readonly<Record<number, z.ZodType | null>>;
};

type Handled = Result<Answer> | Promise<Result<Answer>>;

/** A route as it is written down; without an access rule it does not compile. */
type RouteDefinition<Path extends string, Who extends Access, Query, Body> = RouteFacts & {
  path: Path;
  access: Who;
  query?: ParameterSet<Query>;
  body?: ParameterSet<Body>;
  /** Faults that only what is stored can tell; of what could be read of the body. */
  faults?(app: App, principal: Principal, body: Partial<Body>): readonly ParameterFault[];
  handle(exchange: RouteRequest<Path, Who extends 'anyone' ? null : Principal, Query, Body>): Handled;
};

/** A route as the table holds it: what its parts are called and typed is the handler's own matter. */
export type Route = RouteFacts & {
  query?: ParameterSet<unknown>;
  body?: ParameterSet<unknown>;
  faults?(app: App, principal: Principal, body: unknown): readonly ParameterFault[];
  handle(exchange: RouteRequest<string, Principal | null, unknown, unknown>): Handled;
};

/** Writes down one route. */
export function route<const Path extends string, const Who extends Access, Query = unknown, Body = unknown>(
  definition: RouteDefinition<Path, Who, Query, Body>,
): Route {
  // The server gives each handler what its own definition reads; the table need not know the types.
  return definition;
}
