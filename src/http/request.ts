import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Principal } from '../domain/access/principal.ts';
import {
  done,
  type ParameterFault,
  refuse,
  refuseParameters,
  type Result,
} from '../domain/problem/problem.ts';
import type { RouteResponse } from './response.ts';
import type { App } from './app.ts';
import { duplicate } from './entry/body.ts';
import type { Connections } from './entry/connections.ts';
import { refuseForeignPath } from './entry/tenant.ts';
import { stateOf } from './entry/request-state.ts';
import { requesterOf, readWait } from './entry/waiting-requests.ts';
import { pathOf } from './unknown-route.ts';
import { ProblemError } from './problem-error.ts';
import type { Route, RouteRequest } from './route.ts';
import {
  noParameters,
  type ParameterSet,
  type ParsedParameters,
  type RawParameters,
} from '../wire/parameters.ts';
import type { Idempotency } from '../service/ports.ts';

type AnyRequest = RouteRequest<string, Principal | null, unknown, unknown>;

/** Parses a request for its route; refuses with every fault of its parameters at once. */
export async function readRequest(
  route: Route,
  { app, routes, connections }: { app: App; routes: readonly Route[]; connections: Connections },
  reply: FastifyReply,
): Promise<Result<AnyRequest>> {
  const { request } = reply;
  const state = stateOf(request);
  const { principal } = state;
  const named = namesIn(request.params as Readonly<Record<string, string>>);
  const query = read(route.query, state.query);
  const body = read(route.body, bodyOf(route, request));
  const faults = [
    ...faultsOf(query),
    ...faultsOf(body),
    ...(principal === null ? [] : ((await route.faults?.(app, principal, body.values, query.values)) ?? [])),
  ];
  if (faults.length > 0) return refuseParameters(faults);
  // After the faults: what does not exist is not looked for before them either.
  if (principal !== null && route.owned !== undefined) {
    const refusal = await refuseForeignPath(app, principal, route.owned, named['id'] ?? '');
    if (refusal !== null) return refusal;
  }
  const path = pathOf(request.url);
  const waitMs = readWait(state.head.prefer);
  return done({
    app,
    routes,
    principal,
    path: named,
    query: query.values,
    body: body.values,
    sentTo: { path, query: state.query },
    writeOptions: {
      actor: principal?.credential ?? null,
      requestId: request.id,
      idempotency: idempotencyOf(route, app, request, [path, query.values, body.values]),
    },
    waitMs,
    isAgent: state.head.instance.length > 0,
    signal: connections.signalFor(reply.raw, requesterOf(app, route, { principal, waitMs })),
  });
}

/** What a path names. `\0` is in no name that was ever taken, and not every engine can look for it. */
function namesIn(params: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  if (!Object.values(params).some((name) => name.includes('\0'))) return params;
  return Object.fromEntries(Object.keys(params).map((parameter) => [parameter, '']));
}

function read(set: ParameterSet<unknown> | undefined, raw: RawParameters): ParsedParameters<unknown> {
  return set === undefined ? { ok: true, values: null } : set.read(raw);
}

function faultsOf(parsed: ParsedParameters<unknown>): readonly ParameterFault[] {
  return parsed.ok ? [] : parsed.faults;
}

/** The parameters of the body, or throws why it cannot be read; those of the query among them where the route takes them there too. */
function bodyOf({ isBodyInQuery }: Route, request: FastifyRequest): RawParameters {
  if (request.body instanceof Error) throw request.body;
  const body: RawParameters = request.body instanceof Map ? request.body : noParameters;
  if (isBodyInQuery !== true) return body;
  const { query } = stateOf(request);
  const different = [...body].find(([name, value]) => query.has(name) && query.get(name) !== value);
  if (different !== undefined) throw duplicate(different[0]);
  return new Map([...query, ...body]);
}

function idempotencyOf(
  { method }: Route,
  app: App,
  request: FastifyRequest,
  parsed: readonly [path: string, query: unknown, body: unknown],
): Idempotency | null {
  const { head, principal } = stateOf(request);
  const key = method === 'GET' ? null : readIdempotencyKey(head.idempotencyKey);
  if (key === null || principal === null) return null;
  return requestUnder(key, { credential: principal.credential, asked: [method, ...parsed] }, app);
}

const longestKey = 255;
const quoted = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/;
const bare = /^[\x21\x23-\x7e]+$/;

/** What `readIdempotencyKey` takes, for the documentation. */
export const idempotencyKeyPattern: RegExp = /^(?:"(?:[ !#-[\]-~]|\\["\\]){1,255}"|[!#-~]{1,255})$/;

/**
 * Reads `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header): a quoted string, or bare as
 * many clients send it; `"k"` and `k` are the same key. Null when there is none.
 */
export function readIdempotencyKey(values: readonly string[]): string | null {
  const [value] = values;
  if (value === undefined) return null;
  const key = quoted.exec(value)?.[1]?.replaceAll(/\\(.)/g, '$1') ?? bare.exec(value)?.[0] ?? '';
  if (values.length > 1 || key === '' || key.length > longestKey) {
    const detail = `One key of 1 to ${longestKey} printable ASCII characters is expected, in quotes if it has a space or a quotation mark.`;
    throw new ProblemError('idempotency_key_malformed', detail);
  }
  return key;
}

/** What a request asks for: method, path, and what was read of its query and its body. */
type Asked = readonly [method: string, path: string, query: unknown, body: unknown];

/** What a write is under an idempotency key: another that asks for the same, of the same credential, is the same. */
export function requestUnder(
  key: string,
  { credential, asked }: { credential: string; asked: Asked },
  { digest }: Pick<App, 'digest'>,
): Idempotency {
  return { credential, key, fingerprint: digest(JSON.stringify(asked)) };
}

/** Has a route handle a request; meanwhile refuses another with the same idempotency key of the same credential. */
export async function handleOnce(
  route: Route,
  request: Parameters<Route['handle']>[0],
): Promise<Result<RouteResponse>> {
  const { app, writeOptions } = request;
  const { idempotency } = writeOptions;
  if (idempotency === null) return await route.handle(request);
  const key = `${idempotency.credential} ${idempotency.key}`;
  if (app.inFlight.has(key)) {
    return refuse('idempotency_key_in_use', 'A request with this key is still being answered.', {
      retryAfterS: 1,
    });
  }
  app.inFlight.add(key);
  try {
    const stored = route.answersSecret === true ? null : idempotency;
    return await route.handle({ ...request, writeOptions: { ...writeOptions, idempotency: stored } });
  } finally {
    app.inFlight.delete(key);
  }
}
