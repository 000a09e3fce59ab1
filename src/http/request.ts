import type { FastifyReply, FastifyRequest } from 'fastify';
import { done, refuseParameters, type ParameterFault, type Result } from '../domain/problem.ts';
import type { Idempotency } from '../service/ports.ts';
import type { Desk } from './server-context.ts';
import { readIdempotencyKey } from './entry/idempotency.ts';
import { readWait } from './entry/prefer.ts';
import type { Exchange, Route } from './route.ts';
import { visitOf } from './entry/request-state.ts';
import { noParameters, type ParameterSet, type RawParameters, type Reading } from './wire/parameters.ts';
import type { Grant } from '../domain/grant.ts';

type AnyExchange = Exchange<string, Grant | null, unknown, unknown>;

/** Reads a request for its route; every fault of its parameters at once. */
export function readRequest(
  route: Route,
  { desk, routes }: { desk: Desk; routes: readonly Route[] },
  reply: FastifyReply,
): Result<AnyExchange> {
  const { request } = reply;
  const visit = visitOf(request);
  const query = read(route.query, visit.query);
  const body = read(route.body, request.body instanceof Map ? request.body : noParameters);
  const faults = [
    ...faultsOf(query),
    ...faultsOf(body),
    ...(visit.grant === null ? [] : (route.faults?.(desk, visit.grant, body.values) ?? [])),
  ];
  if (faults.length > 0) return refuseParameters(faults);
  const path = pathOf(request.url);
  return done({
    desk,
    routes,
    grant: visit.grant,
    path: request.params as Readonly<Record<string, string>>,
    query: query.values,
    body: body.values,
    sentTo: { path, query: visit.query },
    asked: {
      actor: visit.grant?.credential ?? null,
      idempotency: idempotencyOf(route, desk, request, [path, query.values, body.values]),
    },
    waitMs: readWait(visit.head.prefer),
    signal: departure(reply),
  });
}

function read(set: ParameterSet<unknown> | undefined, raw: RawParameters): Reading<unknown> {
  return set === undefined ? { ok: true, values: null } : set.read(raw);
}

function faultsOf(reading: Reading<unknown>): readonly ParameterFault[] {
  return reading.ok ? [] : reading.faults;
}

/** Aborts when the caller goes away before the answer; fastify's own signal also does when the body has been read. */
function departure({ raw }: FastifyReply): AbortSignal {
  const leaving = new AbortController();
  raw.once('close', () => {
    if (!raw.writableFinished) leaving.abort();
  });
  return leaving.signal;
}

function pathOf(url: string): string {
  return url.split('?', 1)[0] ?? '';
}

function idempotencyOf(
  { method }: Route,
  { digest }: Desk,
  request: FastifyRequest,
  asked: readonly unknown[],
): Idempotency | null {
  const { head, grant } = visitOf(request);
  const key = method === 'GET' ? null : readIdempotencyKey(head.idempotencyKey);
  if (key === null || grant === null) return null;
  return { credential: grant.credential, key, fingerprint: digest(JSON.stringify([method, ...asked])) };
}
