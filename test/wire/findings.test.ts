import { expect, test } from 'vitest';
import { examineStatus } from '../../src/daemon/doctor/status.ts';
import type { OutboxStatus, Status, UpstreamStatus } from '../../src/service/status.ts';
import { findingsOf } from '../../src/wire/findings.ts';
import { serializeStatus } from '../../src/wire/status.ts';
import { authorityStatus } from '../support/app/http-app.ts';

const now = Date.UTC(2026, 5, 1);
const day = 86_400_000;
const well: Status = {
  ...authorityStatus,
  clock: { now, suspect: false, storeAheadMs: null, highWater: now },
};

const upstream: UpstreamStatus = {
  state: 'up',
  since: now - 1_000,
  protocol: 'plain',
  follows: [],
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
};
const outbox: OutboxStatus = {
  depth: {
    pending: 0,
    in_flight: 0,
    uncertain: 0,
    delivered: 0,
    inferred: 0,
    conflicted: 0,
    dead: 0,
    cancelled: 0,
    dropped: 0,
  },
  held: 0,
  oldestAgeMs: null,
};
const agent: Status = { ...well, role: 'agent', upstream, outbox };

const withDepth = (depth: Partial<OutboxStatus['depth']>, held = 0): Status => ({
  ...agent,
  outbox: { ...outbox, depth: { ...outbox.depth, ...depth }, held },
});
const hour = 3_600_000;
const found = (status: Status, maxPending: number | null = null) =>
  findingsOf(serializeStatus(status), maxPending);
const codes = (status: Status, maxPending: number | null = null) =>
  found(status, maxPending).map(({ level, code }) => `${level} ${code}`);

test.each([
  ['an authority', well],
  ['an agent', agent],
])('Nothing is wrong at %s that is well.', (_, status) => expect(found(status, 10)).toEqual([]));

const tls = (notAfter: number): Status => ({ ...well, listeners: { ...well.listeners, tls: { notAfter } } });

test.each<[string, Status, string]>([
  ['a full disk', { ...well, storage: 'full' }, 'fail storage_full'],
  ['a damaged store', { ...well, storage: 'damaged' }, 'fail storage_damaged'],
  ['a read-only database', { ...well, storage: 'read_only' }, 'fail storage_read_only'],
  ['a database that is away', { ...well, storage: 'unavailable' }, 'fail storage_unavailable'],
  ['a slow database', { ...well, storage: 'slow' }, 'fail storage_slow'],
  ['a database that refuses', { ...well, storage: 'refused' }, 'fail storage_refused'],
  ['a lost socket', { ...well, listeners: { ...well.listeners, lost: ['/run/a'] } }, 'fail socket_lost'],
  ['a wrong clock', { ...well, clock: { ...well.clock, suspect: true } }, 'fail clock_suspect'],
  ['a certificate that ends in a month', tls(now + 30 * day - 1), 'warn certificate_ends_soon'],
  ['a certificate that has ended', tls(now), 'fail certificate_ended'],
  ['an upstream that is down', { ...agent, upstream: { ...upstream, state: 'down' } }, 'warn upstream_down'],
  ['paused sync', { ...agent, upstream: { ...upstream, state: 'paused' } }, 'warn sync_paused'],
  ['a refused secret', { ...agent, upstream: { ...upstream, pausedProducts: ['P'] } }, 'fail secret_refused'],
  ['a refused API key', { ...agent, upstream: { ...upstream, couponsPaused: true } }, 'fail api_key_refused'],
  ['a held change', withDepth({ uncertain: 2 }, 1), 'warn operations_held'],
  ['a conflicted change', withDepth({ conflicted: 1 }), 'warn operations_conflicted'],
  ['a dead change', withDepth({ dead: 1 }), 'warn operations_dead'],
  [
    'expired licenses',
    { ...agent, records: { fresh: 0, stale: 0, grace: 0, expired: 2, disabled: 0 } },
    'warn licenses_expired',
  ],
  [
    'license keys that the store no longer knows',
    { ...agent, missing: { count: 2, since: now - hour } },
    'warn licenses_missing',
  ],
])('A status shows %s.', (_, status, expected) => expect(codes(status)).toEqual([expected]));

test('A status shows a certificate only within 30 days of its end, and a full outbox only at its limit.', () => {
  expect(codes(tls(now + 30 * day))).toEqual([]);
  expect(codes(withDepth({ pending: 7, in_flight: 1, uncertain: 1 }), 10)).toEqual([]);
  expect(codes(withDepth({ pending: 8, in_flight: 1, uncertain: 1 }), 10)).toEqual(['fail outbox_full']);
});

test('What fails comes before what is only a warning.', () => {
  const status: Status = { ...withDepth({ dead: 1, uncertain: 3 }, 3), storage: 'full' };
  expect(codes(status)).toEqual(['fail storage_full', 'warn operations_held', 'warn operations_dead']);
  expect(found(status).slice(1)).toEqual([
    {
      code: 'operations_held',
      level: 'warn',
      what: '3 changes may have been applied: a person must decide',
      advice: 'see what each decision would do, and decide',
      command: 'outbox list --state uncertain',
      page: 'outbox?state=uncertain',
    },
    expect.objectContaining({ what: '1 change was refused by the upstream' }),
  ]);
});

const hint = (words: string) => `latchkey ${words}`;

test('The doctor reports a refused secret, with what to do.', () => {
  const status: Status = { ...agent, upstream: { ...upstream, pausedProducts: ['Q'] } };
  const findings = examineStatus(serializeStatus(status), hint, 10);
  expect(findings.map(({ level, what, advice }) => `${level} ${what} → ${advice}`)).toEqual([
    'fail the upstream refuses the secret of the product Q: its changes wait → put the right secret into the configuration and reload; if it was right all along, resume: latchkey sync resume',
  ]);
});

test('The doctor reports that the store does not know license keys any more, since when, and when they are refused.', () => {
  const status: Status = { ...agent, missing: { count: 2, since: now - hour } };
  expect(examineStatus(serializeStatus(status), hint, 10)).toEqual([
    {
      level: 'warn',
      what: 'the store has answered 404 since 2026-05-31T23:00:00+00:00 for 2 license keys that it knew: they are refused after freshness.gone',
      advice: expect.stringMatching(/; see which: latchkey license list$/) as string,
    },
  ]);
});

test('The doctor does not report what it examines itself, nor refer to itself.', () => {
  const down = { ...upstream, state: 'down', lastError: 'connection refused' } as const;
  const status: Status = { ...agent, ...tls(now), upstream: down };
  expect(codes(status)).toEqual(['fail certificate_ended', 'warn upstream_down']);
  expect(examineStatus(serializeStatus(status), hint, 10)).toEqual([
    {
      level: 'warn',
      what: 'the upstream has been unavailable since 2026-05-31T23:59:59+00:00: connection refused',
      advice: 'see the findings on it below',
    },
  ]);
});
