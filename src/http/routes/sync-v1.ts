import { allows, type Principal, type Scope } from '../../domain/access/principal.ts';
import { failWith, type Result } from '../../domain/problem/problem.ts';
import { maxPushBytes, scopesOf } from '../../domain/sync/push.ts';
import type { SyncServer } from '../../service/sync/ports.ts';
import { enveloped } from '../../wire/response.ts';
import {
  changesObject,
  changesParameters,
  knownObject,
  knownParameters,
  pushParameters,
  pushReplyObject,
  readOperation,
  serializeChanges,
  serializeInfo,
  serializeKnown,
  serializePush,
  syncInfoObject,
} from '../../wire/sync.ts';
import type { App } from '../app.ts';
import { ProblemError } from '../problem-error.ts';
import { ok } from '../response.ts';
import { route, type Route } from '../route.ts';

/** Any valid credential. What an operation needs depends on its kind. */
const access = { credential: 'any', scope: null } as const;

const info = route({
  method: 'GET',
  path: '/sync/v1',
  operationId: 'getSyncInfo',
  tag: 'Sync',
  summary: 'Tell an agent that this is a Latchkey, and the limits of the protocol',
  refusals: ['not_the_authority', 'not_offered_by_holder'],
  access,
  answers: { 200: enveloped(syncInfoObject) },
  async handle({ app }) {
    const epoch = await serverOf(app).epoch();
    return epoch.ok ? ok(serializeInfo({ instance: app.instance, epoch: epoch.value })) : epoch;
  },
});

const push = route({
  method: 'POST',
  path: '/sync/v1/push',
  operationId: 'pushOperations',
  tag: 'Sync',
  summary: "Carry out an agent's changes, once, however often the request is repeated",
  refusals: [
    'out_of_sequence',
    'sequence_reused',
    'scope_missing',
    'too_many_agents',
    'coupons_not_configured',
    'not_offered_by_holder',
  ],
  access,
  repeats: true,
  digestsBody: true,
  bodyBytes: maxPushBytes,
  body: pushParameters,
  answers: { 200: enveloped(pushReplyObject) },
  async handle({ app, principal, body: { agent, seq, operations: sent }, bodyDigest, writeOptions }) {
    const operations = sent.map(readOperation);
    const refusal = missingScope(principal, operations);
    if (refusal !== null) return refusal;
    const { tenant } = principal;
    const command = { agentId: agent, tenant, seq, digest: bodyDigest, operations };
    const applied = await serverOf(app).push(command, writeOptions);
    return applied.ok ? ok(serializePush(applied.value)) : applied;
  },
});

const changingScopes: readonly Scope[] = ['use', 'manage', 'coupons:write'];

function missingScope(
  principal: Principal,
  operations: Parameters<typeof scopesOf>[0],
): Result<never> | null {
  const allowed = (scope: Scope): boolean => allows(principal, scope);
  // A push is stored even if none of its operations can be read.
  const other = changingScopes.some(allowed) ? undefined : 'use';
  const missing = scopesOf(operations).find((scope) => !allowed(scope)) ?? other;
  return missing === undefined ? null : failWith('scope_missing', `The scope ${missing} is needed.`);
}

const known = route({
  method: 'POST',
  path: '/sync/v1/known',
  operationId: 'findOperations',
  tag: 'Sync',
  summary: 'Tell a restored agent which of its changes were carried out',
  refusals: ['not_offered_by_holder'],
  access,
  readsOnly: true,
  repeats: true,
  bodyBytes: maxPushBytes,
  body: knownParameters,
  answers: { 200: enveloped(knownObject) },
  async handle({ app, principal: { tenant }, body: { ids } }) {
    return ok(serializeKnown(await serverOf(app).known(tenant.accountId, ids)));
  },
});

const changes = route({
  method: 'POST',
  path: '/sync/v1/changes',
  operationId: 'followLicenses',
  tag: 'Sync',
  summary:
    'Follow license keys: answered when one of them changes, a watched key appears, or the wait is over',
  refusals: ['too_many_agents', 'too_many_keys', 'not_offered_by_holder'],
  access: { credential: 'any', scope: 'verify' },
  readsOnly: true,
  repeats: true,
  mayWait: true,
  bodyBytes: maxPushBytes,
  body: changesParameters,
  answers: { 200: enveloped(changesObject) },
  // Not an async function, which would keep the body while the request waits.
  handle: ({ app, principal: { tenant }, body, writeOptions, signal }) =>
    serverOf(app)
      .changes(
        {
          agentId: body.agent,
          tenant,
          epoch: body.epoch ?? null,
          cursor: body.cursor ?? null,
          follow: body.follow,
          unfollow: body.unfollow,
          watch: body.watch,
          waitMs: body.wait * 1_000,
        },
        writeOptions,
        signal,
      )
      .then((answered) => (answered.ok ? ok(serializeChanges(answered.value)) : answered)),
});

function serverOf({ syncServer }: App): SyncServer {
  if (syncServer === null) throw new ProblemError('not_offered_by_holder', 'A holder answers no agents.');
  return syncServer;
}

/** What agents ask their upstream for (src/sync/README.md, Between Latchkeys). */
export const syncV1Routes: readonly Route[] = [info, push, known, changes];
