import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Principal, Scope } from '../domain/access/principal.ts';
import type { RoleName } from '../domain/role.ts';
import type { ProblemCode } from '../domain/problem/problem-table.ts';
import type { Search } from '../domain/search.ts';
import type { ParameterFault, Result } from '../domain/problem/problem.ts';
import type { WriteOptions } from '../service/ports.ts';
import type { Awaitable } from '../service/tables.ts';
import type { RouteResponse } from './response.ts';
import type { App, AppIn, ServerSettings } from './app.ts';
import type { RefusalForm } from './dialects.ts';
import type { ParameterSet, RawParameters } from '../wire/parameters.ts';

/** One request as a handler sees it: authorized, and its parameters parsed. */
export type RouteRequest<Path extends string, HasPrincipal, Query, Body, Role extends RoleName = RoleName> = {
  app: AppIn<Role>;
  /** Null only if the route needs no credential. */
  principal: HasPrincipal;
  /** The parameters of the path. */
  path: Readonly<Record<PathNames<Path>, string>>;
  query: Query;
  body: Body;
  /** Where in license keys the caller may search (domain/search.ts): one that gets them masked, only in what is shown. */
  searchedKeys: Search['keys'];
  /** Path and query as sent, to build links from. */
  sentTo: { path: string; query: RawParameters };
  /** SHA-256 of the body, if the route has it computed (`digestsBody`). */
  bodyDigest: string;
  /** For the writer: the actor to record, and the idempotency key. */
  writeOptions: WriteOptions;
  /** How long to wait for the upstream, in ms (`Prefer: wait`). */
  waitMs: number;
  /** Whether another agent sent the request (`Latchkey-Instance`). */
  isAgent: boolean;
  /** The tags of what the caller has already (`If-None-Match`). */
  ifNoneMatch: () => string;
  /** Aborts if the caller disconnects. */
  signal: AbortSignal;
  routes: readonly Route[];
  /** The address of the connection (wire/proof.ts); null at the public listener, which tells no address of this machine. */
  reachedAt: () => string | null;
  /** The header `Authorization`, of a route that reads it; '' if it was not sent. */
  authorization: string;
  /** The header `User-Agent`; null: it was not sent. */
  userAgent: string | null;
  /** The address of the client, behind the proxies of the public listener. */
  clientAddress: string;
  /** The name of the connection, which no other connection of this process has had. */
  connection: string;
};

type PathNames<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | PathNames<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

/** Resources in a path that belong to one account. */
export type Owned = 'account' | 'collection' | 'product' | 'purchase';

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** Who may use a route: anyone, or a credential of this kind that carries the scope (null: any valid credential). */
export type Access = 'anyone' | { credential: 'api_key' | 'product_secret' | 'any'; scope: Scope | null };

/** A route without its handler. */
type RouteFacts = {
  method: Method;
  /** Parameters are written `:name`. */
  path: string;
  /** The name of the method in generated clients. */
  operationId: string;
  /** The group of the route in the OpenAPI document. */
  tag: Tag;
  summary: string;
  /** Headers of a success, in addition to the headers of every response and every list. */
  headers?: readonly ('location' | 'provenance' | 'left_out' | 'etag')[];
  /** Agents deliver their operations by this route (src/http/README.md, Other Latchkeys). */
  takesOperations?: boolean;
  /** Problems of this route only; src/http/openapi/responses.ts adds the common problems. */
  refusals?: readonly ProblemCode[];
  access: Access;
  /** True: no credential is needed at this moment, and the principal is null. */
  isOpen?(app: App): boolean;
  /** The roles that offer the route; absent: all. */
  roles?: readonly RoleName[];
  /** What the other roles refuse it with, if not with the usual problem (entry/admission.ts). */
  elsewhere?: { code?: ProblemCode; detail: string };
  /** The route is about the whole process: a credential of one account gets 403 `operator_only`. */
  operatorOnly?: boolean;
  /**
   * The sessions of people at a page that may use the route. Absent: those that may change things, and all of them if the
   * route is a GET under `/admin/v1`.
   */
  sessions?: 'all' | 'admin' | 'none';
  /** Throws a problem for what the route refuses before the body is read. */
  check?: (app: App, listener: Pick<ServerSettings, 'servesPages'>, request: FastifyRequest) => void;
  /** The resource that `:id` names. A resource of another account gets the response of a missing one. */
  owned?: Owned;
  /** The response contains a new secret: it is not stored under an idempotency key. */
  answersSecret?: boolean;
  /** Reads a body in CSV; absent: CSV is refused. Throws if the body is no CSV. */
  readCsv?(body: Buffer, request: { query: RawParameters; startedAt: number }): Promise<RawParameters>;
  /** The route changes nothing, whatever its method: a success is not logged. */
  readsOnly?: boolean;
  /** The limit for the body if it is above `limits.body_bytes`; for a document or an event, always. */
  bodyBytes?: number;
  /** Bodies are also read as multipart, and a body of another type is ignored, as the store does. */
  takesAnyBody?: boolean;
  /** The form of its refusals; absent: that of the dialect under `/api`, and problems elsewhere. */
  refusal?: RefusalForm;
  /** The parameters of the body may also be in the query. */
  isBodyInQuery?: boolean;
  /** The response is a verdict on a license key. Without a verdict, `listen.unknown` decides. */
  isVerdict?: boolean;
  /**
   * The same response as `handle`, if one synchronous read of the store is enough; null: call `handle`. The target is
   * the path with its query.
   */
  respondNow?(app: App, principal: Principal, target: string): RouteResponse | null;
  /** `listen.public` serves the route, too. */
  isPublic?: boolean;
  /** With `Prefer: wait` and a nonce, the response has a lease that is newer than the nonce. */
  prefersNewLease?: boolean;
  /** The body is a signed document (`application/jwt`) and not a set of parameters. */
  takesDocument?: boolean;
  /** The body is an event of a store, which is passed on byte by byte with its headers. */
  takesEvent?: boolean;
  /** The SHA-256 of the body is computed. */
  digestsBody?: boolean;
  /** The request may wait for a change: its connection can be given to another caller. */
  mayWait?: boolean;
  /** The route also works while the process starts and drains. */
  always?: boolean;
  /** The connection stays open after this request, although the route needs no credential. */
  staysOpen?(query: RawParameters): boolean;
  /** A repetition under the same idempotency key is executed again. */
  repeats?: boolean;
  /** The body is read while it is sent, so the request waits until the earlier responses of its connection are sent. */
  isStreamed?: boolean;
  /** The schema of the response body by status; null: no body. */
  answers: Readonly<Record<number, z.ZodType | null>>;
};

type Handled = Awaitable<Result<RouteResponse>>;

/** A route as written in routes/; without an access rule it does not compile. */
type RouteDefinition<
  Path extends string,
  Who extends Access,
  Query,
  Body,
  Role extends RoleName,
> = RouteFacts & {
  roles?: readonly Role[];
  path: Path;
  access: Who;
  query?: ParameterSet<Query>;
  body?: ParameterSet<Body>;
  /** Faults that are found in the store; `body` and `query` have the valid parameters. */
  faults?(
    app: App,
    principal: Principal,
    body: Partial<Body>,
    query: Partial<Query>,
  ): Awaitable<readonly ParameterFault[]>;
  /** What makes two bodies the same request under one idempotency key; absent: all parameters. */
  identityOf?(body: Body): object;
  handle(request: RouteRequest<Path, Who extends 'anyone' ? null : Principal, Query, Body, Role>): Handled;
};

/** A route in the table, its parameter types erased. */
export type Route = RouteFacts & {
  query?: ParameterSet<unknown>;
  body?: ParameterSet<unknown>;
  faults?(
    app: App,
    principal: Principal,
    body: unknown,
    query: unknown,
  ): Awaitable<readonly ParameterFault[]>;
  identityOf?(body: unknown): object;
  handle(request: RouteRequest<string, Principal | null, unknown, unknown>): Handled;
};

/** Defines a route; checks that its handler fits its path, access rule, roles and parameters. */
export function route<
  const Path extends string,
  const Who extends Access,
  const Role extends RoleName = RoleName,
  Query = unknown,
  Body = unknown,
>(definition: RouteDefinition<Path, Who, Query, Body, Role>): Route {
  // Sound, since the server passes a handler only what its own definition has parsed, and only in the route's roles.
  return definition;
}

/** The sessions of people at a page that may use a route. */
export function sessionsOf({ method, path, sessions }: Route): NonNullable<Route['sessions']> {
  const isRead = method === 'GET' && path.startsWith('/admin/v1/');
  return sessions ?? (isRead ? 'all' : 'admin');
}

/** The groups of routes, in the order of the document. */
export const tags = {
  Licenses: 'Verify license keys, count their uses, enable and disable them.',
  Coupons: "A seller's coupons.",
  Checkout: 'Quotes and redemptions: the discount of a coupon on a cart, and the orders that used it.',
  'First version': 'The first version of the store’s API, for existing software.',
  Products: 'Products, each with its own secret.',
  Collections: 'Groups of products that a coupon can be for.',
  Purchases: 'Sales and their refunds: each sale issues a license key.',
  Accounts: 'Sellers, each with an API key.',
  'Import and export': 'Import from and export to other stores.',
  Outbox: 'Changes that wait for the upstream of an agent, and decisions about them.',
  Sync: "An agent's traffic with its upstream.",
  Leases: 'Signed proofs that a license is valid on a device, and the devices that have a seat.',
  Console: 'How the page of the console gets its session.',
  Webhooks: 'Events of stores that an agent receives, and endpoints of other systems that get events.',
  Tokens: 'Credentials with limited scopes.',
  Audit: 'The permanent record of administrative changes.',
  Server: 'Health, status, metrics and backups of this process.',
} as const;

type Tag = keyof typeof tags;
