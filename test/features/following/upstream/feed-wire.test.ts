import { expect, test } from 'vitest';
import { readChanges } from '../../../../src/features/following/upstream/feed-wire.ts';

test('the license keys of an answer may have any length', () => {
  const licenseKey = 'K'.repeat(1_024);
  const license = {
    license_key: licenseKey,
    enabled: true,
    product_link: 'p',
    buyer_email: 'b@example.com',
    uses: 0,
    date: null,
  };
  const data = {
    epoch: 'e',
    cursor: 'c',
    confirmed_at: '2026-01-01T00:00:00+00:00',
    changes: [{ license_key: licenseKey, revision: 1, license }],
    absent: [`${licenseKey}2`],
  };
  expect(readChanges({ data })).toMatchObject({
    value: { licenses: [{ license: { licenseKey } }], absent: [`${licenseKey}2`] },
  });
});
