import { expect, test } from 'vitest';
import { serializeChanges } from '../../src/features/following/wire/change-feed.ts';
import { serializeLease, serializeNotice } from '../../src/features/leases/wire/lease.ts';
import { buildLicense } from '../support/builders/store-builders.ts';

/*
 * What agents and devices get about a license without terms, as it was recorded before licenses had terms: those that do not
 * know terms must see the same bytes.
 */

test('a follower and a device get the same bytes as before about a license without terms', () => {
  const known = buildLicense();
  const reply = {
    epoch: 'e',
    cursor: 'c',
    confirmedAt: Date.UTC(2026, 0, 1),
    changes: [{ license: known, revision: 3 }],
    absent: [],
    appeared: [],
    hasMore: false,
    isReset: false,
    isPutBack: false,
  };
  const issuedAt = Date.UTC(2026, 0, 1);
  const common = { activationId: 'activation-1', device: 'd'.repeat(43), rev: 7, issuedAt };
  const lease = {
    ...common,
    productKey: 'press',
    license: { ...known, buyerEmail: '' },
    expiresAt: issuedAt + 2_592_000_000,
    refreshAt: issuedAt + 86_400_000,
    seats: { limit: 3, taken: 1 },
    nonce: null,
  };
  const notice = { ...common, licenseKey: 'KEY-1', state: 'disabled' } as const;
  const bytes = [
    serializeChanges(reply),
    serializeLease(lease, 'https://licenses.example.com', '0'.repeat(64)),
    serializeNotice(notice, 'https://licenses.example.com', '0'.repeat(64)),
  ].map((document) => JSON.stringify(document));
  const bare =
    '"license_key":"KEY-1","enabled":true,"product_link":"press","buyer_email":"","uses":0,"date":"2026-01-01T00:00:00+00:00"';
  const device = `"cnf":{"jkt":"${common.device}"},"request":"${'A'.repeat(43)}"`;
  expect(bytes).toEqual([
    `{"epoch":"e","cursor":"c","confirmed_at":"2026-01-01T00:00:00+00:00","changes":[{"license_key":"KEY-1","revision":3,"license":{${bare.replace('""', '"a@example.com"')}}}],"absent":[]}`,
    `{"iss":"https://licenses.example.com","aud":"press","sub":"activation-1","exp":1769817600,"issued_at":1767225600,"refresh_at":1767312000,"rev":7,"license":{${bare}},"seats":{"limit":3,"taken":1},${device}}`,
    `{"iss":"https://licenses.example.com","sub":"activation-1","license_key":"KEY-1","state":"disabled","rev":7,"issued_at":1767225600,${device}}`,
  ]);
});
