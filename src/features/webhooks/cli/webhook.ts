import { eventTypes } from '../../../domain/event.ts';
import {
  type AttemptObject,
  attemptObject,
  type DeliveryObject,
  deliveryObject,
  replayObject,
  webhookObject,
  type WebhookObject,
} from '../wire/webhook.ts';
import { defineList, defineRequest, pathOf, type View } from '../../../cli/client/request.ts';
import { positional, textOption } from '../../../cli/command.ts';
import { exitCode } from '../../../cli/exit-code.ts';
import {
  type Cell,
  formatFields,
  formatTable,
  instant,
  type Tone,
  toned,
  whole,
} from '../../../cli/format.ts';

const webhooksPath = '/admin/v1/webhooks';

const webhookPositional = positional('Id of the endpoint, as in webhook list', 'webhook');

const tones: Readonly<Record<WebhookObject['state'], Tone>> = {
  active: 'good',
  failing: 'warning',
  paused: 'bad',
};

/** Everything about an endpoint. */
const webhookView: View<WebhookObject> = {
  schema: webhookObject,
  show: (webhook) => formatFields(webhookFields(webhook)),
};

/** An endpoint with its new secret. */
const webhookSecretView: View<WebhookObject> = {
  schema: webhookObject,
  show: (webhook) => [
    formatFields({ secret: whole(webhook.secret ?? ''), ...webhookFields(webhook) }),
    'The secret is shown only this once. The receiver verifies each event with it.',
  ],
};

export const commands = [
  defineRequest({
    command: 'add <url>',
    describe: 'Add an endpoint that gets events, and show its secret',
    builder: {
      url: positional('Where to send events'),
      events: textOption('Types of events, separated by commas; without it, all types'),
    },
    examples: [
      ['latchkey webhook add https://example.com/latchkey', 'gets every event'],
      [
        'latchkey webhook add https://example.com/latchkey --events license.issued,purchase.refunded',
        'gets sales and refunds',
      ],
    ],
    epilogue: `Types: ${eventTypes.join(', ')}. Events are signed as Standard Webhooks says. The endpoint gets the events from now on.`,
    request: ({ url, events }) => ({
      method: 'POST',
      path: webhooksPath,
      json: { url, events: events?.split(',').map((each) => each.trim()) },
    }),
    view: webhookSecretView,
  }),
  defineList({
    command: 'list',
    describe: 'List the endpoints that get events',
    builder: {},
    examples: [['latchkey webhook list', 'whether events arrive, and how many wait']],
    list: { path: webhooksPath, member: 'webhooks', item: webhookObject, row: webhookRow },
  }),
  defineRequest({
    command: 'show <id>',
    describe: 'Show an endpoint that gets events',
    builder: { id: webhookPositional },
    examples: [['latchkey webhook show WEBHOOK_ID', 'why the last event could not be delivered']],
    request: ({ id }) => ({ path: pathOf(webhooksPath, id) }),
    view: webhookView,
  }),
  defineRequest({
    command: 'test <id>',
    describe: 'Send a test event to an endpoint now',
    builder: { id: webhookPositional },
    examples: [
      ['latchkey webhook test WEBHOOK_ID', 'whether the receiver can be reached, and accepts the signature'],
    ],
    request: ({ id }) => ({ method: 'POST', path: `${pathOf(webhooksPath, id)}/test` }),
    view: {
      schema: attemptObject,
      show: (attempt) => formatFields(attemptFields(attempt)),
      exitCode: ({ delivered }) => (delivered ? exitCode.done : exitCode.failed),
    },
  }),
  defineList({
    command: 'deliveries <id>',
    describe: 'List the events that were sent to an endpoint, the latest first',
    builder: { id: webhookPositional },
    examples: [['latchkey webhook deliveries WEBHOOK_ID', 'what the receiver answered']],
    list: { path: webhooksPath, member: 'deliveries', item: deliveryObject, row: deliveryRow },
    within: ({ id }) => `/${encodeURIComponent(id)}/deliveries`,
  }),
  defineRequest({
    command: 'replay <event>',
    describe: 'Send an event again, under the same id',
    builder: { event: positional('Id of the event, as in webhook deliveries') },
    examples: [['latchkey webhook replay EVENT_ID', 'after the receiver has lost the event']],
    epilogue:
      'Each endpoint that gets events of this type gets the event again. A paused endpoint stays paused.',
    request: ({ event }) => ({
      method: 'POST',
      path: `/admin/v1/webhook-events/${encodeURIComponent(event)}/replay`,
    }),
    view: {
      schema: replayObject,
      show: ({ attempts }) => formatTable(attempts.map(attemptFields)),
      exitCode: ({ attempts }) =>
        attempts.every(({ delivered }) => delivered) ? exitCode.done : exitCode.failed,
    },
  }),
  defineRequest({
    command: 'rotate <id>',
    describe: 'Replace the secret of an endpoint; the old one also signs for a day',
    builder: { id: webhookPositional },
    examples: [['latchkey webhook rotate WEBHOOK_ID', 'the receiver has a day to change to the new secret']],
    request: ({ id }) => ({ method: 'POST', path: `${pathOf(webhooksPath, id)}/rotate` }),
    view: webhookSecretView,
  }),
  defineRequest({
    command: 'resume <id>',
    describe: 'Deliver to a paused endpoint again, or to a failing endpoint at once',
    builder: { id: webhookPositional },
    examples: [['latchkey webhook resume WEBHOOK_ID', 'when the receiver works again']],
    epilogue: 'The endpoint gets the events of the last 30 days that it has missed.',
    request: ({ id }) => ({ method: 'POST', path: `${pathOf(webhooksPath, id)}/resume` }),
    view: webhookView,
  }),
  defineRequest({
    command: 'remove <id>',
    describe: 'Remove an endpoint: it gets no further event',
    builder: { id: webhookPositional },
    examples: [['latchkey webhook remove WEBHOOK_ID', 'events that wait for it are not sent']],
    request: ({ id }) => ({ method: 'DELETE', path: pathOf(webhooksPath, id) }),
    view: {
      ...webhookView,
      show: (removed, ...rest) => ['removed', ...[webhookView.show(removed, ...rest)].flat()],
    },
  }),
];

/** The columns of an endpoint in a list. */
function webhookRow(webhook: WebhookObject): Readonly<Record<string, Cell>> {
  const { state } = webhook;
  return {
    webhook: whole(webhook.webhook_id),
    url: whole(webhook.url),
    state: [toned(state, tones[state])],
    waiting: webhook.waiting,
    'last success': instant(webhook.last_success_at),
  };
}

function webhookFields(webhook: WebhookObject): Readonly<Record<string, Cell>> {
  return {
    ...webhookRow(webhook),
    events: webhook.events?.join(', ') ?? 'all',
    'last error': webhook.last_error,
    'failing since': instant(webhook.failing_since),
    'next attempt': instant(webhook.next_attempt_at),
    'old secret until': instant(webhook.old_secret_until),
    created: instant(webhook.created_at),
  };
}

function attemptFields(attempt: AttemptObject): Readonly<Record<string, Cell>> {
  return {
    webhook: whole(attempt.webhook_id),
    url: whole(attempt.url),
    result: [attempt.delivered ? toned('delivered', 'good') : toned('failed', 'bad')],
    status: attempt.status,
    error: attempt.error,
    took: `${attempt.duration_ms} ms`,
  };
}

function deliveryRow(delivery: DeliveryObject): Readonly<Record<string, Cell>> {
  const { state } = delivery;
  return {
    event: whole(delivery.event_id),
    type: delivery.type,
    state: [toned(state, state === 'delivered' ? 'good' : 'bad')],
    attempts: delivery.attempts,
    status: delivery.status,
    error: delivery.error,
    at: instant(delivery.at),
  };
}
