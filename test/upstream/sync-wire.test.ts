import { expect, test } from 'vitest';
import { readChanges, readInfo } from '../../src/upstream/sync-wire.ts';

const quoted = 'no license Canary Key of secret lk_prod_Canary';

test('an instance that is no id is that of another server', () => {
  const data = { instance: quoted, epoch: 'e', keep_days: 30, max_wait: 25 };
  expect(readInfo({ data })).toHaveProperty('fault');
  expect(readInfo({ data: { ...data, instance: '019c8443-0000-7000-8000-000000000000' } })).toHaveProperty(
    'value',
  );
});

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
