import { expect, test } from 'vitest';
import type { Status } from '../../../../src/service/status.ts';
import { findingsOf } from '../../../../src/wire/findings.ts';
import { serializeStatus } from '../../../../src/wire/status.ts';
import { authorityStatus } from '../../../support/app/http-app.ts';

const now = Date.UTC(2026, 5, 1);
const day = 86_400_000;
const well: Status = {
  ...authorityStatus,
  clock: { now, suspect: false, storeAheadMs: null, highWater: now },
};
const leases = {
  issuer: 'https://issuer.example',
  device: 'd',
  lastSuccessAt: now - 1,
  lastError: null as string | null,
  lastErrorAt: null as number | null,
  nextEnd: now + 20 * day,
  pendingUses: 0,
};
const holder: Status = { ...well, role: 'holder', leases };
const issuer = {
  issuer: 'https://issuer.example',
  version: 1,
  kid: 'k',
  waiting: 0,
  activations: 0,
  seatsTaken: 0,
};

test.each<[string, Status, string | null]>([
  ['nothing at a holder that is well', holder, null],
  [
    'a signing key that ends',
    { ...well, issuer: { ...issuer, notAfter: now + day } },
    'warn signing_key_ends_soon',
  ],
  [
    'a signing key that has ended',
    { ...well, issuer: { ...issuer, notAfter: now - 1 } },
    'fail signing_key_ended',
  ],
  [
    'a silent issuer',
    { ...holder, leases: { ...leases, lastError: 'refused', lastErrorAt: now } },
    'warn issuer_unavailable',
  ],
  [
    'a silent issuer and a lease that ends',
    { ...holder, leases: { ...leases, lastError: 'refused', lastErrorAt: now, nextEnd: now + day } },
    'fail issuer_unavailable',
  ],
  [
    'an ended lease',
    { ...holder, records: { fresh: 0, stale: 0, grace: 0, expired: 1, disabled: 0 } },
    'fail leases_ended',
  ],
])('A status shows %s.', (_, status, expected) => {
  const found = findingsOf(serializeStatus(status)).map(({ level, code }) => `${level} ${code}`);
  expect(found).toEqual(expected === null ? [] : [expected]);
});
