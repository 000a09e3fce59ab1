import {
  afterAttempt,
  claimMs,
  isClaimable,
  type Attempt,
  type WebhookEndpoint,
  type WebhookEvent,
} from '../domain/webhook.ts';
import { done, type Result } from '../../../domain/problem/problem.ts';
import type { Context } from '../../../service/ports.ts';
import type { AuthorityTransaction } from '../../../service/tables.ts';

/** An event to deliver. The process that has the claim delivers it. */
export type ClaimedDelivery = { endpoint: WebhookEndpoint; event: WebhookEvent };

/**
 * Claims an endpoint for the delivery of its next event; null: it has none, or another node has the endpoint. A claim ends
 * by itself, in case that its node ends. `claim`: a new id. `isAlone`: no other process uses the store.
 */
export async function claimDelivery(
  { webhooks }: AuthorityTransaction,
  { endpointId, claim, isAlone }: { endpointId: string; claim: string; isAlone: boolean },
  { now }: Pick<Context, 'now'>,
): Promise<Result<ClaimedDelivery | null>> {
  const endpoint = await webhooks.lock(endpointId);
  if (endpoint === null || !isClaimable(endpoint, { now, isAlone })) return done(null);
  return done(await claimNext(webhooks, endpoint, { claim, now }));
}

async function claimNext(
  webhooks: AuthorityTransaction['webhooks'],
  endpoint: WebhookEndpoint,
  { claim, now }: { claim: string; now: number },
): Promise<ClaimedDelivery | null> {
  // Read before the event: an event that is added between the two reads is above this number.
  const last = await webhooks.lastNumber();
  const event = await webhooks.next(endpoint.position, endpoint.types);
  if (event === null) {
    const position = Math.max(endpoint.position, last);
    await webhooks.put({ ...endpoint, position, claim: null, claimedUntil: null });
    return null;
  }
  const claimed = { ...endpoint, claim, claimedUntil: now + claimMs };
  await webhooks.put(claimed);
  return { endpoint: claimed, event };
}

type RecordDelivery = {
  endpointId: string;
  claim: string;
  event: WebhookEvent;
  attempt: Attempt;
  /** The process ends: claim no further event. */
  isLast: boolean;
};

/**
 * Records an attempt, and claims the next event after a success. Null: the claim has ended, so that another node delivers
 * the event again.
 */
export async function recordDelivery(
  transaction: AuthorityTransaction,
  { endpointId, claim, event, attempt, isLast }: RecordDelivery,
  { now, random }: Pick<Context, 'now' | 'random'>,
): Promise<Result<{ endpoint: WebhookEndpoint; next: ClaimedDelivery | null } | null>> {
  const { webhooks } = transaction;
  const endpoint = await webhooks.lock(endpointId);
  if (endpoint === null || endpoint.claim !== claim) return done(null);
  await putDelivery(transaction, { endpointId, event, attempt }, now);
  const after = afterAttempt(endpoint, event, attempt, { now, fraction: random.fraction() });
  if (attempt.error === null && !isLast) {
    return done({ endpoint: after, next: await claimNext(webhooks, after, { claim, now }) });
  }
  await webhooks.put(after);
  return done({ endpoint: after, next: null });
}

/** An event that was delivered stays delivered, whatever a replay brings. */
async function putDelivery(
  { webhooks }: AuthorityTransaction,
  { endpointId, event, attempt }: { endpointId: string; event: WebhookEvent; attempt: Attempt },
  now: number,
): Promise<void> {
  const { number, eventId, type } = event;
  const before = await webhooks.delivery(endpointId, number);
  await webhooks.putDelivery({
    endpointId,
    number,
    eventId,
    type,
    isDelivered: attempt.error === null || before?.isDelivered === true,
    attempts: (before?.attempts ?? 0) + 1,
    status: attempt.status,
    error: attempt.error,
    durationMs: attempt.durationMs,
    at: now,
  });
}

/** Records that a person had an event sent again. It does not count for the health of the endpoints. */
export async function recordReplay(
  transaction: AuthorityTransaction,
  { event, results }: { event: WebhookEvent; results: readonly { endpointId: string; attempt: Attempt }[] },
  { now }: Pick<Context, 'now'>,
): Promise<Result<null>> {
  for (const { endpointId, attempt } of results) {
    // The endpoint may have been removed meanwhile.
    if ((await transaction.webhooks.get(endpointId)) === null) continue;
    await putDelivery(transaction, { endpointId, event, attempt }, now);
  }
  return done(null);
}

/** Does nothing but add its audit entry: a person had a test event sent. */
export function recordWebhookTest(
  _transaction: AuthorityTransaction,
  _command: { endpointId: string; attempt: Attempt },
): Result<null> {
  return done(null);
}

/** Removes up to `limit` events from before an instant, and their deliveries. */
export async function pruneEvents(
  { webhooks }: AuthorityTransaction,
  { before, limit }: { before: number; limit: number },
): Promise<Result<{ removed: number }>> {
  return done({ removed: await webhooks.prune(before, limit) });
}
