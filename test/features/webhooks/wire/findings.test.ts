import { expect, test } from 'vitest';
import type { Status } from '../../../../src/service/status.ts';
import { findingsOf } from '../../../../src/wire/findings.ts';
import { serializeStatus } from '../../../../src/wire/status.ts';
import { authorityStatus } from '../../../support/app/http-app.ts';

const now = Date.UTC(2026, 5, 1);
const hour = 3_600_000;
const well: Status = {
  ...authorityStatus,
  clock: { now, suspect: false, storeAheadMs: null, highWater: now },
};
const found = (status: Status): string[] =>
  findingsOf(serializeStatus(status)).map(({ level, what }) => `${level} ${what}`);

const sender = { name: 'shop', from: 'payhip', lastEventAt: null, lastRefusedAt: null, lastRefusal: null };
const withSender = (changes: object): Status => ({
  ...well,
  role: 'agent',
  storeEvents: { senders: [{ ...sender, ...changes }], waitingReads: 0 },
});

test.each([
  ['none came', {}, 'ok webhooks.in.shop has received no event since the start'],
  [
    'the last was right',
    { lastEventAt: now, lastRefusedAt: now - 1, lastRefusal: 'wrong_signature' },
    'ok webhooks.in.shop received its last event at 2026-06-01T00:00:00+00:00',
  ],
  [
    'the last had a wrong signature',
    { lastEventAt: now - hour, lastRefusedAt: now, lastRefusal: 'wrong_signature' },
    'warn the last event for webhooks.in.shop (payhip) had a wrong signature, at 2026-06-01T00:00:00+00:00: it was ignored',
  ],
  [
    'the last could not be read',
    { lastRefusedAt: now, lastRefusal: 'not_understood' },
    'warn the last event for webhooks.in.shop (payhip) could not be read, at 2026-06-01T00:00:00+00:00: it was ignored',
  ],
])('A status shows the events of a store: %s.', (_, changes, expected) => {
  expect(found(withSender(changes))).toEqual([expected]);
});

test.each([
  [{ endpoints: 3, failing: 0, paused: 0, oldestAt: null }, []],
  [
    { endpoints: 3, failing: 1, paused: 2, oldestAt: null },
    [
      'fail 2 webhook endpoints are paused: events wait, and are removed after 30 days',
      'warn 1 webhook endpoint does not take events: they wait',
    ],
  ],
])('A status shows webhook endpoints that take no events: %j.', (webhooks, expected) => {
  expect(found({ ...well, webhooks })).toEqual(expected);
});
