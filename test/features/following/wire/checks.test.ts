import { expect, test } from 'vitest';
import { examineStatus } from '../../../../src/daemon/doctor/status.ts';
import type { FollowStatus, Status, UpstreamStatus } from '../../../../src/service/status.ts';
import { findingsOf } from '../../../../src/wire/findings.ts';
import { serializeStatus } from '../../../../src/wire/status.ts';
import { authorityStatus } from '../../../support/app/http-app.ts';

const now = Date.UTC(2026, 5, 1);
const hour = 3_600_000;

/** An agent that follows license keys. */
const withFollows = (changes: Partial<FollowStatus>, more: Partial<UpstreamStatus> = {}): Status => ({
  ...authorityStatus,
  role: 'agent',
  clock: { now, suspect: false, storeAheadMs: null, highWater: now },
  upstream: {
    state: 'up',
    since: now - 1_000,
    protocol: 'latchkey',
    follows: [{ productKey: 'P', followed: 2, confirmedAt: now, ...changes }],
    breaker: 'closed',
    lastSuccessAt: now,
    lastError: null,
    lastErrorAt: null,
    recoveredAt: null,
    retryAfterUntil: null,
    nextAttemptAt: null,
    proxy: null,
    pausedProducts: [],
    couponsPaused: false,
    ...more,
  },
});
const codes = (status: Status) =>
  findingsOf(serializeStatus(status)).map(({ level, code }) => `${level} ${code}`);

test('A status shows a silent change feed only while the upstream answers other requests.', () => {
  const silent = { confirmedAt: now - hour };
  expect(codes(withFollows(silent))).toEqual(['warn sync_silent']);
  expect(codes(withFollows({ confirmedAt: now - 5 * 60_000 }))).toEqual([]);
  expect(codes(withFollows(silent, { lastSuccessAt: now - hour + 1_000 }))).toEqual([]);
  expect(codes(withFollows(silent, { state: 'paused' }))).toEqual(['warn sync_paused']);
  // The credential is the reason.
  expect(codes(withFollows(silent, { pausedProducts: ['P'] }))).toEqual(['fail secret_refused']);
  expect(codes(withFollows({ confirmedAt: null }))).toEqual([]);
});

test('The doctor says what to do about a silent change feed.', () => {
  const status = serializeStatus(withFollows({ confirmedAt: now - hour }));
  expect(examineStatus(status, (words) => `latchkey ${words}`, 10)).toMatchObject([
    {
      level: 'warn',
      what: 'the upstream answers, but not at /sync/v1 since 2026-05-31T23:00:00+00:00: changes are delivered, but a refund is seen only at the next refresh of its key',
      advice: 'let what is in front of the upstream pass /sync/v1 on',
    },
  ]);
});
