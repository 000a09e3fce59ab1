import {
  maxEndpoints,
  resumed,
  rotated,
  type WebhookEndpoint,
  type Attempt,
  type WebhookEvent,
} from '../domain/webhook.ts';
import type { EventType } from '../../../domain/event.ts';
import { done, failWithFaults, notFound, type Result } from '../../../domain/problem/problem.ts';
import type { Context, Random } from '../../../service/ports.ts';
import type { WebhookStatus } from '../../../service/status.ts';
import type { AuthorityReader, AuthorityTransaction } from '../../../service/tables.ts';

/** The length of a new secret. Standard Webhooks asks for 24 to 64 bytes. */
const secretBytes = 32;

function newSecret(random: Random): string {
  return `whsec_${Buffer.from(random.bytes(secretBytes)).toString('base64')}`;
}

/** Adds an endpoint. It gets the events from now on. */
export async function addWebhook(
  { webhooks }: AuthorityTransaction,
  { url, types }: { url: string; types: readonly EventType[] | null },
  { now, random }: Context,
): Promise<Result<WebhookEndpoint>> {
  const all = await webhooks.all();
  if (all.length >= maxEndpoints) {
    const detail = `There are ${maxEndpoints} endpoints already: remove one.`;
    return failWithFaults([{ parameter: 'url', code: 'too_many', detail }]);
  }
  const endpoint: WebhookEndpoint = {
    endpointId: random.uuid(now),
    url,
    types,
    secret: newSecret(random),
    oldSecret: null,
    oldSecretUntil: null,
    state: 'active',
    position: Math.max(now, await webhooks.lastNumber()),
    failures: 0,
    failingSince: null,
    nextAt: null,
    claim: null,
    claimedUntil: null,
    lastSuccessAt: null,
    lastError: null,
    createdAt: now,
  };
  await webhooks.put(endpoint);
  return done(endpoint);
}

type ById = { endpointId: string };

/** Removes an endpoint. A delivery that is under way may still arrive. */
export async function removeWebhook(
  { webhooks }: AuthorityTransaction,
  { endpointId }: ById,
): Promise<Result<WebhookEndpoint>> {
  const endpoint = await webhooks.lock(endpointId);
  if (endpoint === null) return notFound('webhook');
  await webhooks.remove(endpointId);
  return done(endpoint);
}

/** Replaces the secret of an endpoint. The old secret also signs for a day. */
export async function rotateWebhook(
  { webhooks }: AuthorityTransaction,
  { endpointId }: ById,
  { now, random }: Context,
): Promise<Result<WebhookEndpoint>> {
  const endpoint = await webhooks.lock(endpointId);
  if (endpoint === null) return notFound('webhook');
  const after = rotated(endpoint, newSecret(random), now);
  await webhooks.put(after);
  return done(after);
}

/** Resumes a paused endpoint, or tries a failing endpoint at once. */
export async function resumeWebhook(
  { webhooks }: AuthorityTransaction,
  { endpointId }: ById,
): Promise<Result<WebhookEndpoint>> {
  const endpoint = await webhooks.lock(endpointId);
  if (endpoint === null) return notFound('webhook');
  if (endpoint.state === 'active' && endpoint.failures === 0) return { ...done(endpoint), unchanged: true };
  const after = resumed(endpoint);
  await webhooks.put(after);
  return done(after);
}

/** The endpoints at a glance; null: there is none. */
export async function webhookStatus({
  webhooks,
}: Pick<AuthorityReader, 'webhooks'>): Promise<WebhookStatus | null> {
  const all = await webhooks.all();
  if (all.length === 0) return null;
  const waiting = await Promise.all(
    all.map(async ({ position, types }) => await webhooks.next(position, types)),
  );
  const times = waiting.flatMap((event) => (event === null ? [] : [event.at]));
  return {
    endpoints: all.length,
    failing: all.filter(({ state, failures }) => state === 'active' && failures > 0).length,
    paused: all.filter(({ state }) => state === 'paused').length,
    oldestAt: times.length === 0 ? null : Math.min(...times),
  };
}

/** Sends what a person asks for at once. */
export interface WebhookSender {
  /** Whether events may be sent to a URL now. */
  check(url: string): Promise<Result<unknown>>;
  /** Sends a test event. */
  test(endpoint: WebhookEndpoint): Promise<Attempt>;
  /** Sends a stored event again, under the same id. */
  replay(endpoint: WebhookEndpoint, event: WebhookEvent): Promise<Attempt>;
  /** Looks for something to deliver: an endpoint was added or resumed. */
  wake(): void;
}
