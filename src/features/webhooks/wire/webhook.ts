import { z } from 'zod';
import {
  maxUrlLength,
  subjectKinds,
  type Attempt,
  type WebhookDelivery,
  type WebhookEndpoint,
  type WebhookEvent,
} from '../domain/webhook.ts';
import { eventTypes } from '../../../domain/event.ts';
import { formatDatetime } from '../../../domain/time.ts';
import { instant, parameters, someOf, text } from '../../../wire/parameters.ts';
import { serializerOf } from '../../../wire/shape.ts';

const eventType = z.enum(eventTypes);

const members = {
  license: 'license_key',
  licenses: 'license_keys',
  activation: 'activation_id',
  operation: 'operation_id',
} as const;

/** The body of an event, as it is sent to an endpoint: the same bytes at each attempt and each replay. */
export function eventBody({ type, subject, number, at }: WebhookEvent): string {
  const kind = subjectKinds[type];
  const value: unknown = kind === 'licenses' && subject !== null ? JSON.parse(subject) : subject;
  const about = kind === null || value === null ? {} : { [members[kind]]: value };
  return JSON.stringify({ type, timestamp: formatDatetime(at), data: { ...about, revision: number } });
}

/** The body of a test, which is about nothing. */
export function testBody(now: number): string {
  return JSON.stringify({ type: 'webhook.test', timestamp: formatDatetime(now), data: { revision: now } });
}

/** `state`: `failing` if the last attempt failed. */
export const endpointStates = ['active', 'failing', 'paused'] as const;

export const webhookObject = z
  .object({
    webhook_id: z.string(),
    url: z.string(),
    events: z.array(eventType).readonly().nullable().describe('The types that it gets; null: all types.'),
    secret: z.string().optional().describe('Only in the answer to add and rotate.'),
    state: z
      .enum(endpointStates)
      .describe(
        '`failing`: the last attempt failed. `paused`: nothing was delivered for three days, or it answered 410.',
      ),
    waiting: z.int().describe('Events that wait for it; at most 10,000 are counted.'),
    failures: z.int().describe('Failed attempts in a row.'),
    failing_since: instant.nullable(),
    next_attempt_at: instant.nullable(),
    last_success_at: instant.nullable(),
    last_error: z.string().nullable(),
    old_secret_until: instant
      .nullable()
      .describe('Until then, the secret before the last rotation also signs.'),
    created_at: instant,
  })
  .meta({ id: 'Webhook' });

export type WebhookObject = z.infer<typeof webhookObject>;

export const webhookList = z.object({ webhooks: z.array(webhookObject) }).meta({ id: 'WebhookList' });

function parseUrl(input: string): URL | null {
  const url = URL.parse(input);
  const isHttp = url?.protocol === 'https:' || url?.protocol === 'http:';
  return isHttp && url.username === '' && url.password === '' && url.hash === '' ? url : null;
}

export const webhookParameters = parameters(
  {
    url: text(maxUrlLength)
      .refine((input) => parseUrl(input) !== null, {
        error: 'url_invalid: must be an http or https URL without a user, a password and a fragment',
        abort: true,
      })
      .transform((input) => parseUrl(input)?.href ?? input),
    events: someOf(eventTypes).optional(),
  },
  // Without its types, a misspelt `events` would get everything.
  { unknown: 'refused', id: 'NewWebhook' },
);

export const deliveryObject = z
  .object({
    event_id: z.string().describe('The `webhook-id` of the message.'),
    revision: z.int(),
    type: eventType,
    state: z.enum(['delivered', 'failed']),
    attempts: z.int(),
    status: z.int().nullable().describe('The status of the last answer; null: there was none.'),
    error: z.string().nullable().describe('Why the last attempt failed; null: it was delivered.'),
    duration_ms: z.int(),
    at: instant.describe('The last attempt.'),
  })
  .meta({ id: 'WebhookDelivery' });

export type DeliveryObject = z.infer<typeof deliveryObject>;

export const deliveryList = z
  .object({ deliveries: z.array(deliveryObject) })
  .meta({ id: 'WebhookDeliveryList' });

export const attemptObject = z
  .object({
    webhook_id: z.string(),
    url: z.string(),
    delivered: z.boolean(),
    status: z.int().nullable(),
    error: z.string().nullable(),
    duration_ms: z.int(),
  })
  .meta({ id: 'WebhookAttempt' });

export type AttemptObject = z.infer<typeof attemptObject>;

export const replayObject = z
  .object({ event_id: z.string(), type: eventType, attempts: z.array(attemptObject) })
  .meta({ id: 'WebhookReplay' });

export type ReplayObject = z.infer<typeof replayObject>;

const writeWebhook = serializerOf(webhookObject.omit({ secret: true }));

export function serializeWebhook(endpoint: WebhookEndpoint, waiting: number): WebhookObject {
  const { state, failures } = endpoint;
  return writeWebhook({
    ...endpoint,
    webhookId: endpoint.endpointId,
    events: endpoint.types,
    state: state === 'active' && failures > 0 ? 'failing' : state,
    waiting,
    nextAttemptAt: state === 'paused' ? null : endpoint.nextAt,
  });
}

const writeDelivery = serializerOf(deliveryObject);

export function serializeDelivery({
  isDelivered,
  number: revision,
  ...same
}: WebhookDelivery): DeliveryObject {
  return writeDelivery({ ...same, revision, state: isDelivered ? 'delivered' : 'failed' });
}

const writeAttempt = serializerOf(attemptObject);

export function serializeAttempt({ endpointId, url }: WebhookEndpoint, attempt: Attempt): AttemptObject {
  return writeAttempt({ ...attempt, webhookId: endpointId, url, delivered: attempt.error === null });
}

export function serializeReplay(
  { eventId, type }: WebhookEvent,
  results: readonly { endpoint: WebhookEndpoint; attempt: Attempt }[],
): ReplayObject {
  const attempts = results.map(({ endpoint, attempt }) => serializeAttempt(endpoint, attempt));
  return { event_id: eventId, type, attempts };
}
