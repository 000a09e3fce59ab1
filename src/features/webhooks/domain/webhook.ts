import type { EventType, NewEvent } from '../../../domain/event.ts';
import { backoffMs, defaultBackoffPolicy } from '../../../domain/outbox/delivery.ts';
import { dayMs } from '../../../domain/time.ts';

/* Events that this store sends to webhook endpoints (Standard Webhooks 1.0). Times are epoch ms. */

/** What the subject of each type is: one license key or several, the id of an activation or of an operation; null: none. */
export const subjectKinds: Readonly<
  Record<EventType, 'license' | 'licenses' | 'activation' | 'operation' | null>
> = {
  'license.issued': 'license',
  'license.disabled': 'license',
  'license.enabled': 'license',
  'license.renewed': 'license',
  'license.expiring': 'license',
  'license.expired': 'license',
  'license.recovery_requested': 'licenses',
  'license.rekeyed': 'license',
  'license.transferred': 'license',
  'license.forgotten': 'license',
  'purchase.refunded': 'license',
  'seat.taken': 'activation',
  'seat.ended': 'activation',
  'lease.expiring': 'activation',
  'outbox.needs_review': 'operation',
  'upstream.down': null,
  'upstream.up': null,
};

/**
 * A stored event. `number` orders the events of the store. It is at least the time of the event in epoch ms, so that it
 * also grows when the store is restored from a backup.
 */
export type WebhookEvent = NewEvent & { number: number; eventId: string; at: number };

/** An address that gets events. */
export type WebhookEndpoint = {
  endpointId: string;
  url: string;
  /** The types that it gets; null: all, also those of later versions. */
  types: readonly EventType[] | null;
  /** Signs what is sent: `whsec_` and base64. */
  secret: string;
  /** Also signs until an instant, after a rotation. */
  oldSecret: string | null;
  oldSecretUntil: number | null;
  state: 'active' | 'paused';
  /** The number of the last event that was delivered or that the endpoint does not get. */
  position: number;
  /** Failed attempts in a row, and since when. */
  failures: number;
  failingSince: number | null;
  /** The next attempt; null: at once. */
  nextAt: number | null;
  /** The delivery that has the endpoint, and until when. */
  claim: string | null;
  claimedUntil: number | null;
  lastSuccessAt: number | null;
  lastError: string | null;
  createdAt: number;
};

/** The last result of an event at an endpoint. */
export type WebhookDelivery = {
  endpointId: string;
  number: number;
  eventId: string;
  type: EventType;
  isDelivered: boolean;
  attempts: number;
  /** The status of the response; null: there was none. */
  status: number | null;
  error: string | null;
  durationMs: number;
  at: number;
};

/** One attempt to deliver an event. `error`: null if the event was delivered. */
export type Attempt = {
  status: number | null;
  error: string | null;
  retryAfterMs: number | null;
  durationMs: number;
};

export const maxEndpoints = 32;
export const maxUrlLength = 1_000;
/** How long both secrets sign after a rotation. */
export const rotationMs = dayMs;
/** After this long without a success, an endpoint is paused. */
export const pauseAfterMs = 3 * dayMs;
/** How long events are stored. */
export const eventsKeptMs = 30 * dayMs;
/** An endpoint is claimed for longer than an attempt may take. */
export const claimMs = 30_000;
/** The longest wait of an endpoint: a longer `Retry-After` counts as this long. */
export const maxWaitMs: number = dayMs / 24;
/** The wait after the first failure in a row. */
const firstWaitMs = 100;

/** The receiver does not want events any more. */
const gone = 410;

/** Whether an endpoint may be claimed now. `isAlone`: a claim is from this process, or from one that has ended. */
export function isClaimable(
  { state, nextAt, claimedUntil }: WebhookEndpoint,
  { now, isAlone }: { now: number; isAlone: boolean },
): boolean {
  return state === 'active' && isOver(nextAt, now) && (isAlone || isOver(claimedUntil, now));
}

/** Whether a wait or a claim has ended. If it ends later than any can, the clock was ahead when it began. */
function isOver(until: number | null, now: number): boolean {
  return until === null || until <= now || until > now + maxWaitMs;
}

/** The endpoint after an attempt to deliver an event. */
export function afterAttempt(
  endpoint: WebhookEndpoint,
  { number }: Pick<WebhookEvent, 'number'>,
  { status, error, retryAfterMs }: Attempt,
  { now, fraction }: { now: number; fraction: number },
): WebhookEndpoint {
  const free = { ...endpoint, claim: null, claimedUntil: null };
  if (error === null) {
    return { ...healthy(free), position: Math.max(endpoint.position, number), lastSuccessAt: now };
  }
  const failures = endpoint.failures + 1;
  const failingSince = Math.min(endpoint.failingSince ?? now, now);
  const isLast = status === gone || now - failingSince >= pauseAfterMs;
  // A receiver that fails now and then gets the event again at once: a second for each failure would delay all others.
  const backoff = failures === 1 ? firstWaitMs : backoffMs(defaultBackoffPolicy, failures - 1, fraction);
  const waitMs = Math.max(backoff, Math.min(retryAfterMs ?? 0, maxWaitMs));
  return {
    ...free,
    state: isLast ? 'paused' : 'active',
    failures,
    failingSince,
    nextAt: now + waitMs,
    lastError: error,
  };
}

/** Resumes a paused endpoint, or tries a failing endpoint at once. It gets the events that are still stored. */
export function resumed(endpoint: WebhookEndpoint): WebhookEndpoint {
  return { ...healthy(endpoint), state: 'active' };
}

function healthy(endpoint: WebhookEndpoint): WebhookEndpoint {
  return { ...endpoint, failures: 0, failingSince: null, nextAt: null, lastError: null };
}

/** The endpoint with another secret. The old secret also signs for a while. */
export function rotated(endpoint: WebhookEndpoint, secret: string, now: number): WebhookEndpoint {
  return { ...endpoint, secret, oldSecret: endpoint.secret, oldSecretUntil: now + rotationMs };
}

/** The secrets that sign now, the current one first. */
export function signingSecrets(
  { secret, oldSecret, oldSecretUntil }: Pick<WebhookEndpoint, 'secret' | 'oldSecret' | 'oldSecretUntil'>,
  now: number,
): readonly string[] {
  return oldSecret !== null && (oldSecretUntil ?? 0) > now ? [secret, oldSecret] : [secret];
}

/** How many bytes a key of Standard Webhooks has. */
const minKeyBytes = 24;
const maxKeyBytes = 64;

/**
 * The keys by which a sender of Standard Webhooks may sign with a secret; none if the secret cannot be the sender's.
 *
 * The standard takes the bytes behind `whsec_`, in base64. Polar signs with the UTF-8 bytes of the whole secret, whatever
 * the secret looks like (`whsec_…`, `polar_whs_…`), if the secret is from before 8 September 2026, and as the standard
 * says if it is newer.
 */
export function signingKeysOf(secret: string): readonly Buffer[] {
  const base64 = /^(?:whsec_)?([A-Za-z0-9+/_-]+)={0,2}$/.exec(secret)?.[1] ?? '';
  const decoded = Buffer.from(base64, 'base64url');
  const whole = Buffer.from(secret);
  const isDecoded = decoded.length >= minKeyBytes && decoded.length <= maxKeyBytes;
  if (secret.startsWith('whsec_')) return isDecoded ? [decoded, whole] : [];
  if (whole.length < minKeyBytes) return [];
  return isDecoded ? [decoded, whole] : [whole];
}

/** Whether an endpoint gets events of a type. */
export function wants({ types }: Pick<WebhookEndpoint, 'types'>, type: EventType): boolean {
  return types === null || types.includes(type);
}
