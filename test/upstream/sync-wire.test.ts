import { expect, test } from 'vitest';
import { readChanges, readInfo, readKnown, readPushReply } from '../../src/upstream/sync-wire.ts';

const quoted = 'no license Canary Key of secret lk_prod_Canary';

test('what an upstream says instead of a code is not kept, because codes are logged', () => {
  const refused = { outcome: 'refused', code: quoted };
  const push = {
    data: { epoch: 'e', seq: 1, results: [refused, { outcome: 'refused', code: 'scope_missing' }] },
  };
  expect(readPushReply(push, { seq: 1, ids: ['a', 'b'] })).toMatchObject({
    value: { results: { a: { code: 'unknown' }, b: { code: 'scope_missing' } } },
  });
  const known = { data: { results: [{ id: 'a', ...refused }] } };
  expect(readKnown(known)).toMatchObject({ value: [{ code: 'unknown' }] });
});

test('an instance that is no id is that of another server', () => {
  const limits = { max_batch: 500, max_bytes: 262_144, max_wait: 25 };
  const data = { protocol: 1, instance: quoted, epoch: 'e', ...limits };
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
    last_seq: 0,
    confirmed_at: '2026-01-01T00:00:00+00:00',
    changes: [{ license_key: licenseKey, revision: 1, license }],
    absent: [`${licenseKey}2`],
  };
  expect(readChanges({ data })).toMatchObject({
    value: { licenses: [{ license: { licenseKey } }], absent: [`${licenseKey}2`] },
  });
});
