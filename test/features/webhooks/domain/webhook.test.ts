import { expect, test } from 'vitest';
import { enabledEvent } from '../../../../src/domain/event.ts';
import { dayMs } from '../../../../src/domain/time.ts';
import {
  afterAttempt,
  isClaimable,
  resumed,
  rotated,
  signingSecrets,
  type Attempt,
  type WebhookEndpoint,
} from '../../../../src/features/webhooks/domain/webhook.ts';

const at = Date.parse('2026-11-27T04:00:00Z');

const endpoint: WebhookEndpoint = {
  endpointId: 'endpoint',
  url: 'https://hooks.example/',
  types: null,
  secret: 'whsec_new',
  oldSecret: null,
  oldSecretUntil: null,
  state: 'active',
  position: 10,
  failures: 0,
  failingSince: null,
  nextAt: null,
  claim: 'claim',
  claimedUntil: at + 30_000,
  lastSuccessAt: null,
  lastError: null,
  createdAt: at,
};
const event = { number: 12 };

function failed(changes: Partial<Attempt> = {}): Attempt {
  return { status: 500, error: 'answered 500', retryAfterMs: null, durationMs: 4, ...changes };
}

function after(attempt: Attempt, before: WebhookEndpoint = endpoint, now = at): WebhookEndpoint {
  return afterAttempt(before, event, attempt, { now, fraction: 0.5 });
}

test('a delivered event moves the position of the endpoint and ends its failures', () => {
  const failing = {
    ...endpoint,
    failures: 3,
    failingSince: at - dayMs,
    nextAt: at,
    lastError: 'answered 500',
  };
  expect(after({ status: 204, error: null, retryAfterMs: null, durationMs: 4 }, failing)).toEqual({
    ...endpoint,
    position: 12,
    lastSuccessAt: at,
    claim: null,
    claimedUntil: null,
  });
});

test('the first wait is a tenth of a second, and each further failure in a row doubles the wait, up to the longest wait of the outbox', () => {
  let failing = endpoint;
  const waits: number[] = [];
  for (let count = 0; count < 14; count += 1) {
    failing = after(failed(), failing);
    waits.push((failing.nextAt ?? 0) - at);
  }
  expect(waits.slice(0, 4)).toEqual([100, 500, 1_000, 2_000]);
  expect(new Set(waits.slice(-2)).size).toBe(1);
  expect(failing).toMatchObject({ position: 10, failures: 14, failingSince: at, lastError: 'answered 500' });
});

test('Retry-After is the shortest wait, and counts as an hour at most', () => {
  expect(after(failed({ retryAfterMs: 90_000 })).nextAt).toBe(at + 90_000);
  expect(after(failed({ retryAfterMs: 7 * dayMs })).nextAt).toBe(at + dayMs / 24);
});

test('an endpoint is paused after three days of failures, and not before', () => {
  const failing = after(failed());
  expect(after(failed(), failing, at + 3 * dayMs - 1).state).toBe('active');
  expect(after(failed(), failing, at + 3 * dayMs).state).toBe('paused');
});

test('an endpoint that answers 410 is paused at once', () => {
  expect(after(failed({ status: 410 })).state).toBe('paused');
});

test('a resumed endpoint is tried at once, from its position', () => {
  const paused = after(failed({ status: 410 }));
  expect(resumed(paused)).toEqual({ ...endpoint, claim: null, claimedUntil: null });
});

test('an endpoint is claimable unless it is paused, waits, or another process has it', () => {
  const free = { ...endpoint, claim: null, claimedUntil: null };
  const shared = { now: at, isAlone: false };
  expect(isClaimable(free, shared)).toBe(true);
  expect(isClaimable(endpoint, shared)).toBe(false);
  expect(isClaimable(endpoint, { now: at + 30_000, isAlone: false })).toBe(true);
  expect(isClaimable(endpoint, { now: at, isAlone: true })).toBe(true);
  expect(isClaimable({ ...free, state: 'paused' }, shared)).toBe(false);
  expect(isClaimable({ ...free, nextAt: at + 1 }, shared)).toBe(false);
});

test('a wait, a claim and a failure of a clock that was ahead do not hold an endpoint after the clock was set back', () => {
  const year = 365 * dayMs;
  const failing = after(failed({ retryAfterMs: dayMs }), endpoint, at + year);
  const shared = { now: at, isAlone: false };
  expect(isClaimable(failing, shared)).toBe(true);
  expect(isClaimable({ ...endpoint, claimedUntil: at + year }, shared)).toBe(true);
  // The clock of another node may be ahead by minutes.
  expect(isClaimable({ ...endpoint, claimedUntil: at + dayMs / 24 }, shared)).toBe(false);
  expect(after(failed(), after(failed(), failing), at + 3 * dayMs).state).toBe('paused');
});

test('both secrets sign for a day after a rotation, then only the new one', () => {
  const rotating = rotated(endpoint, 'whsec_newer', at);
  expect(signingSecrets(rotating, at + dayMs - 1)).toEqual(['whsec_newer', 'whsec_new']);
  expect(signingSecrets(rotating, at + dayMs)).toEqual(['whsec_newer']);
});

test('only a license that changes its state has an event', () => {
  expect(enabledEvent('KEY', true, true)).toBeNull();
  expect(enabledEvent('KEY', true, false)).toEqual({ type: 'license.disabled', subject: 'KEY' });
  expect(enabledEvent('KEY', false, true)).toEqual({ type: 'license.enabled', subject: 'KEY' });
});
