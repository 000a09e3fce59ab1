import {
  webhookObject,
  type AttemptObject,
  type DeliveryObject,
  type WebhookObject,
} from '../../../wire/webhook.ts';
import type { View } from '../../client/request.ts';
import { positional } from '../../command.ts';
import { type Cell, formatFields, instant, type Tone, toned, whole } from '../../format.ts';

export const webhooksPath = '/admin/v1/webhooks';

export const webhookPositional = positional('Id of the endpoint, as in webhook list', 'webhook');

export function webhookPath(id: string): string {
  return `${webhooksPath}/${encodeURIComponent(id)}`;
}

const tones: Readonly<Record<WebhookObject['state'], Tone>> = {
  active: 'good',
  failing: 'warning',
  paused: 'bad',
};

/** The columns of an endpoint in a list. */
export function webhookRow(webhook: WebhookObject): Readonly<Record<string, Cell>> {
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

/** Everything about an endpoint. */
export const webhookView: View<WebhookObject> = {
  schema: webhookObject,
  show: (webhook) => formatFields(webhookFields(webhook)),
};

/** An endpoint with its new secret. */
export const webhookSecretView: View<WebhookObject> = {
  schema: webhookObject,
  show: (webhook) => [
    formatFields({ secret: whole(webhook.secret ?? ''), ...webhookFields(webhook) }),
    'The secret is shown only this once. The receiver verifies each event with it.',
  ],
};

export function attemptFields(attempt: AttemptObject): Readonly<Record<string, Cell>> {
  return {
    webhook: whole(attempt.webhook_id),
    url: whole(attempt.url),
    result: [attempt.delivered ? toned('delivered', 'good') : toned('failed', 'bad')],
    status: attempt.status,
    error: attempt.error,
    took: `${attempt.duration_ms} ms`,
  };
}

export function deliveryRow(delivery: DeliveryObject): Readonly<Record<string, Cell>> {
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
