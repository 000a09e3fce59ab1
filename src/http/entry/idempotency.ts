import type { FastifyRequest } from 'fastify';
import { operationHeader } from '../../domain/header-names.ts';
import type { Tenant } from '../../domain/access/principal.ts';
import { failWith, type Result } from '../../domain/problem/problem.ts';
import { reachOf, storeOf } from '../../domain/latchkey.ts';
import type { Idempotency, Keyed } from '../../service/ports.ts';
import type { Awaitable } from '../../service/tables.ts';
import type { App } from '../app.ts';
import { ProblemError } from '../problem-error.ts';
import type { RouteResponse } from '../response.ts';
import type { Route } from '../route.ts';
import { stateOf } from './request-state.ts';

/** A repeated write has the same credential, key, method, path, query and body. */
export function idempotencyOf(
  route: Route,
  app: App,
  request: FastifyRequest,
  [path, query, body]: readonly [path: string, query: unknown, body: unknown],
): Idempotency | null {
  const { head, principal } = stateOf(request);
  const key = route.method === 'GET' ? null : readIdempotencyKey(head.idempotencyKey);
  if (key === null || principal === null) return null;
  const fingerprint = app.digest(
    JSON.stringify([route.method, path, query, route.identityOf?.(body) ?? body]),
  );
  const keyed = route.takesOperations === true ? readOperation(key, head.operation) : null;
  if (keyed === null) return { credential: principal.credential, key, fingerprint };
  return { ...keyOfTenant(app, principal.tenant, key), fingerprint: shortened(fingerprint), keyed };
}

/**
 * The key of a stored answer to an agent. Short, because an agent may have millions of them. The key belongs to all credentials
 * of the tenant: the agent may get another secret before its operation is answered.
 */
export function keyOfTenant(
  { digest }: Pick<App, 'digest'>,
  tenant: Tenant,
  id: string,
): Pick<Idempotency, 'credential' | 'key'> {
  return {
    credential: `~${shortened(digest(reachOf(tenant)))}`,
    key: Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url'),
  };
}

/** 48 bits of a digest. */
function shortened(digest: string): string {
  return Buffer.from(digest.slice(0, 12), 'hex').toString('base64url');
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const operation = /^created=(\d{1,15})(?:, epoch=([0-9a-f]{32}))?(, repeat)?(?:, seen=(\d{1,15}))?$/;

/** Reads `Latchkey-Operation`, with which an agent delivers an operation of its outbox; null: another caller has sent the request. */
function readOperation(key: string, values: readonly string[]): Keyed | null {
  if (values.length === 0 || !uuid.test(key)) return null;
  const [, createdAt, epoch = null, repeat, seen] = operation.exec(values.join()) ?? [];
  if (createdAt === undefined) {
    const form = 'created=<epoch ms>[, epoch=<32 hex>][, repeat][, seen=<revision>]';
    throw new ProblemError('malformed_request', `${operationHeader} is expected as ${form}.`);
  }
  return {
    id: key,
    createdAt: Number(createdAt),
    epoch,
    isRepeat: repeat !== undefined,
    seenRevision: seen === undefined ? null : Number(seen),
  };
}

const longestKey = 255;
const quoted = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/;
const bare = /^[\x21\x23-\x7e]+$/;

/** The header values that `readIdempotencyKey` accepts, for the documentation. */
export const idempotencyKeyPattern: RegExp = /^(?:"(?:[ !#-[\]-~]|\\["\\]){1,255}"|[!#-~]{1,255})$/;

/**
 * Reads `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header): a quoted string, or unquoted as many clients send
 * it. `"k"` and `k` are the same key. Null: the header is missing.
 */
function readIdempotencyKey(values: readonly string[]): string | null {
  const [value] = values;
  if (value === undefined) return null;
  const key = quoted.exec(value)?.[1]?.replaceAll(/\\(.)/g, '$1') ?? bare.exec(value)?.[0] ?? '';
  if (values.length > 1 || key === '' || key.length > longestKey) {
    const detail = `One key of 1 to ${longestKey} printable ASCII characters is expected, in quotes if it has a space or a quotation mark.`;
    throw new ProblemError('idempotency_key_malformed', detail);
  }
  return key;
}

/** Runs the handler of a route. Refuses a second request with the same credential and idempotency key meanwhile. */
export function handleOnce(
  route: Route,
  request: Parameters<Route['handle']>[0],
): Awaitable<Result<RouteResponse>> {
  const { idempotency } = request.writeOptions;
  return idempotency === null ? route.handle(request) : handleUnderKey(route, request, idempotency);
}

async function handleUnderKey(
  route: Route,
  request: Parameters<Route['handle']>[0],
  idempotency: Idempotency,
): Promise<Result<RouteResponse>> {
  const { app, writeOptions } = request;
  const refusal = await refuseOtherStore(app, idempotency);
  if (refusal !== null) return refusal;
  const key = `${idempotency.credential} ${idempotency.key}`;
  if (app.inFlight.has(key)) {
    return failWith('idempotency_key_in_use', 'A request with this key is still being answered.', {
      retryAfterS: 1,
    });
  }
  app.inFlight.add(key);
  try {
    const stored = route.answersSecret === true || route.repeats === true ? null : idempotency;
    return await route.handle({ ...request, writeOptions: { ...writeOptions, idempotency: stored } });
  } finally {
    app.inFlight.delete(key);
  }
}

/**
 * An agent has sent its operation to another store before: that store may have carried it out. To a store that was restored
 * since, the agent sends first what the store has lost: a change must not overtake an earlier one.
 */
async function refuseOtherStore(app: App, { keyed }: Idempotency): Promise<Result<never> | null> {
  const sentTo = keyed?.epoch ?? null;
  if (sentTo === null) return null;
  const epoch = await app.epoch();
  if (epoch === null) {
    const detail = 'This agent does not know yet what its upstream is.';
    return failWith('upstream_unreachable', detail, { retryAfterS: 1 });
  }
  if (sentTo === epoch) return null;
  const isRestored = storeOf(sentTo) === storeOf(epoch);
  const what = isRestored ? 'This store was restored since' : 'The agent knows another store at this address';
  return failWith('other_store', `${what}.`);
}
