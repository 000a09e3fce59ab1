import { maxFollowBytes } from '../domain/change-feed.ts';
import { enveloped } from '../../../wire/response.ts';
import {
  changesObject,
  changesParameters,
  serializeChanges,
  serializeInfo,
  syncInfoObject,
} from '../wire/change-feed.ts';
import { keyOfTenant } from '../../../http/entry/idempotency.ts';
import { ok } from '../../../http/response.ts';
import { route, type Route } from '../../../http/route.ts';

const shared = {
  tag: 'Sync',
  roles: ['authority', 'agent'],
  elsewhere: { detail: 'A holder answers no agents.' },
} as const;

const info = route({
  ...shared,
  method: 'GET',
  path: '/sync/v1',
  operationId: 'getSyncInfo',
  summary: 'Tell an agent that this is a Latchkey, and the limits of the protocol',
  refusals: ['not_the_authority'],
  access: { credential: 'any', scope: null },
  answers: { 200: enveloped(syncInfoObject) },
  async handle({ app }) {
    const epoch = await app.changeFeed.epoch();
    return epoch.ok ? ok(serializeInfo({ instance: app.instance, epoch: epoch.value })) : epoch;
  },
});

const changes = route({
  ...shared,
  method: 'POST',
  path: '/sync/v1/changes',
  operationId: 'followLicenses',
  summary:
    'Follow license keys: answered when one of them changes, a watched key appears, or the wait is over',
  refusals: ['too_many_agents', 'too_many_keys'],
  access: { credential: 'any', scope: 'verify' },
  readsOnly: true,
  repeats: true,
  mayWait: true,
  bodyBytes: maxFollowBytes,
  body: changesParameters,
  answers: { 200: enveloped(changesObject) },
  // Not an async function, which would keep the body while the request waits.
  handle: ({ app, principal: { tenant }, body, writeOptions, signal }) =>
    app.changeFeed
      .changes(
        {
          agentId: body.agent,
          tenant,
          epoch: body.epoch ?? null,
          cursor: body.cursor ?? null,
          follow: body.follow,
          unfollow: body.unfollow,
          watch: body.watch,
          carriedOut: body.carriedOut === undefined ? null : keyOfTenant(app, tenant, body.carriedOut),
          waitMs: body.wait * 1_000,
        },
        writeOptions,
        signal,
      )
      .then((answered) => (answered.ok ? ok(serializeChanges(answered.value)) : answered)),
});

/** What followers ask (src/sync/BETWEEN-LATCHKEYS.md, The change feed). */
export const changeFeedRoutes: readonly Route[] = [info, changes];
