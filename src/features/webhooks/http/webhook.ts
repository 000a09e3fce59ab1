import { withNext } from '../../../domain/page.ts';
import { notFound, type Result } from '../../../domain/problem/problem.ts';
import { wants, type Attempt, type WebhookEndpoint } from '../domain/webhook.ts';
import type { WebhookSender } from '../service/endpoint.ts';
import { pageQuery } from '../../../wire/page.ts';
import { enveloped } from '../../../wire/response.ts';
import {
  attemptObject,
  deliveryList,
  replayObject,
  serializeAttempt,
  serializeDelivery,
  serializeReplay,
  serializeWebhook,
  webhookList,
  webhookObject,
  webhookParameters,
  type WebhookObject,
} from '../wire/webhook.ts';
import type { App } from '../../../http/app.ts';
import { created, ok, pageOf } from '../../../http/response.ts';
import { route, type Route } from '../../../http/route.ts';

/* Events name license keys of all accounts, so endpoints are the operator's. */
const shared = {
  tag: 'Webhooks',
  access: { credential: 'any', scope: 'admin' },
  operatorOnly: true,
  roles: ['authority', 'agent'],
  elsewhere: { detail: 'A holder sends no events.' },
} as const;
const path = '/admin/v1/webhooks';
/** How many waiting events are counted for each endpoint. */
const maxWaiting = 10_000;

async function describe({ reader }: App, endpoint: WebhookEndpoint): Promise<WebhookObject> {
  const { position, types } = endpoint;
  return serializeWebhook(endpoint, await reader.webhooks.waiting(position, types, maxWaiting));
}

const add = route({
  ...shared,
  method: 'POST',
  path,
  operationId: 'addWebhook',
  summary: 'Add an endpoint that gets events; its secret is shown only this once',
  answersSecret: true,
  body: webhookParameters,
  answers: { 201: enveloped(webhookObject) },
  async handle({ app, body: { url, events = null }, writeOptions }) {
    const checked = await app.webhooks.check(url);
    if (!checked.ok) return checked;
    const added = await app.writer.write('addWebhook', { url, types: events }, writeOptions);
    if (!added.ok) return added;
    app.webhooks.wake();
    return created({ ...serializeWebhook(added.value, 0), secret: added.value.secret });
  },
});

const list = route({
  ...shared,
  method: 'GET',
  path,
  operationId: 'listWebhooks',
  summary: 'List the endpoints that get events, but not their secrets',
  query: pageQuery('webhooks'),
  answers: { 200: enveloped(webhookList) },
  async handle({ app, query, sentTo }) {
    const all = await app.reader.webhooks.all();
    const { cursor, offset, limit } = withNext(query);
    const after = String(cursor?.[0] ?? '');
    const rows = all.filter(({ endpointId }) => endpointId > after).slice(offset, offset + limit);
    const keyOf = ({ endpointId }: WebhookEndpoint): [string] => [endpointId];
    const read = pageOf({ list: 'webhooks', rows, total: all.length, keyOf }, query, sentTo);
    return ok(
      { webhooks: await Promise.all(read.items.map(async (each) => await describe(app, each))) },
      read.headers,
    );
  },
});

const show = route({
  ...shared,
  method: 'GET',
  path: `${path}/:id`,
  operationId: 'getWebhook',
  summary: 'Show an endpoint that gets events',
  refusals: ['webhook_not_found'],
  answers: { 200: enveloped(webhookObject) },
  async handle({ app, path: { id } }) {
    const endpoint = await app.reader.webhooks.get(id);
    return endpoint === null ? notFound('webhook') : ok(await describe(app, endpoint));
  },
});

const changes = {
  rotate: {
    operationId: 'rotateWebhook',
    summary:
      'Replace the secret of an endpoint, which is shown only this once; the old one also signs for a day',
  },
  resume: {
    operationId: 'resumeWebhook',
    summary: 'Deliver to a paused endpoint again, or to a failing endpoint at once',
  },
} as const;

function changeRoute(change: keyof typeof changes): Route {
  return route({
    ...shared,
    method: 'POST',
    path: `${path}/:id/${change}`,
    ...changes[change],
    refusals: ['webhook_not_found'],
    ...(change === 'rotate' && { answersSecret: true }),
    answers: { 200: enveloped(webhookObject) },
    async handle({ app, path: { id: endpointId }, writeOptions }) {
      const useCase = change === 'rotate' ? 'rotateWebhook' : 'resumeWebhook';
      const changed = await app.writer.write(useCase, { endpointId }, writeOptions);
      if (!changed.ok) return changed;
      app.webhooks.wake();
      const described = await describe(app, changed.value);
      return ok(change === 'rotate' ? { ...described, secret: changed.value.secret } : described);
    },
  });
}

const remove = route({
  ...shared,
  method: 'DELETE',
  path: `${path}/:id`,
  operationId: 'removeWebhook',
  summary: 'Remove an endpoint, which gets no further event',
  refusals: ['webhook_not_found'],
  answers: { 200: enveloped(webhookObject) },
  async handle({ app, path: { id: endpointId }, writeOptions }) {
    const removed = await app.writer.write('removeWebhook', { endpointId }, writeOptions);
    return removed.ok ? ok(serializeWebhook(removed.value, 0)) : removed;
  },
});

const test = route({
  ...shared,
  method: 'POST',
  path: `${path}/:id/test`,
  operationId: 'testWebhook',
  summary: 'Send a test event to an endpoint, and answer what came back',
  refusals: ['webhook_not_found'],
  answers: { 200: enveloped(attemptObject) },
  async handle({ app, path: { id: endpointId }, writeOptions }) {
    const endpoint = await app.reader.webhooks.get(endpointId);
    if (endpoint === null) return notFound('webhook');
    const attempt = await app.webhooks.test(endpoint);
    const recorded = await app.writer.write('recordWebhookTest', { endpointId, attempt }, writeOptions);
    return recorded.ok ? ok(serializeAttempt(endpoint, attempt)) : recorded;
  },
});

const deliveries = route({
  ...shared,
  method: 'GET',
  path: `${path}/:id/deliveries`,
  operationId: 'listWebhookDeliveries',
  summary: 'List the events that were sent to an endpoint, the latest first',
  refusals: ['webhook_not_found'],
  query: pageQuery('deliveries'),
  answers: { 200: enveloped(deliveryList) },
  async handle({ app, path: { id }, query, sentTo }) {
    const { webhooks } = app.reader;
    if ((await webhooks.get(id)) === null) return notFound('webhook');
    const rows = await webhooks.deliveries(id, withNext(query));
    const total = await webhooks.deliveryCount(id);
    const read = pageOf({ list: 'deliveries', rows, total, keyOf: ({ number }) => [number] }, query, sentTo);
    return ok({ deliveries: read.items.map(serializeDelivery) }, read.headers);
  },
});

const replay = route({
  ...shared,
  method: 'POST',
  path: '/admin/v1/webhook-events/:id/replay',
  operationId: 'replayWebhookEvent',
  summary: 'Send an event again to every endpoint that gets its type, under the same id',
  refusals: ['event_not_found'],
  answers: { 200: enveloped(replayObject) },
  async handle({ app, path: { id }, writeOptions }) {
    const event = await app.reader.webhooks.event(id);
    if (event === null) return notFound('event');
    const all = await app.reader.webhooks.all();
    const endpoints = all.filter((endpoint) => wants(endpoint, event.type));
    const results = await replayTo(app.webhooks, endpoints, event);
    const command = {
      event,
      results: results.map(({ endpoint: { endpointId }, attempt }) => ({ endpointId, attempt })),
    };
    const recorded: Result<unknown> = await app.writer.write('recordReplay', command, writeOptions);
    if (!recorded.ok) return recorded;
    return ok(serializeReplay(event, results));
  },
});

async function replayTo(
  sender: WebhookSender,
  endpoints: readonly WebhookEndpoint[],
  event: Parameters<WebhookSender['replay']>[1],
): Promise<{ endpoint: WebhookEndpoint; attempt: Attempt }[]> {
  return await Promise.all(
    endpoints.map(async (endpoint) => ({ endpoint, attempt: await sender.replay(endpoint, event) })),
  );
}

/** Webhook endpoints (src/http/README.md, Webhooks). */
export const webhookRoutes: readonly Route[] = [
  add,
  list,
  show,
  changeRoute('rotate'),
  changeRoute('resume'),
  remove,
  test,
  deliveries,
  replay,
];
