import { expect, test } from 'vitest';
import type { License } from '../../../src/domain/license.ts';
import {
  deactivateAnswer,
  isDeactivated,
  keyOfCall,
  readCall,
  readValidated,
  texts,
  validateAnswer,
} from '../../../src/stores/lemonsqueezy/wire.ts';

const key = '38b1460a-5104-4067-a91d-77b872934d51';
const now = Date.parse('2026-06-01T00:00:00Z');
const shown = { id: 7, key, status: 'active', activation_limit: 5, activation_usage: 2, expires_at: null };
const meta = { store_id: 76833, customer_email: 'buyer@example.com', customer_name: 'Buyer' };
const good = { valid: true, error: null, license_key: shown, instance: null, meta };

function licenseIn(body: Record<string, unknown>, storedKey = key): License {
  const reading = readValidated(body, { storedKey, now }, 200);
  if ('fault' in reading) throw new Error(reading.fault);
  return reading.value;
}

test('a license has the store, the buyer and the end of Lemon Squeezy’s answer', () => {
  const license_key = {
    ...shown,
    created_at: '2026-01-05T19:38:56.000000Z',
    expires_at: '2027-01-05T19:38:56.700000Z',
  };
  expect(licenseIn({ ...good, license_key })).toMatchObject({
    licenseKey: key,
    productKey: '76833',
    buyerEmail: 'buyer@example.com',
    uses: 0,
    enabled: true,
    createdAt: Date.parse('2026-01-05T19:38:56Z'),
    expiresAt: Date.parse('2027-01-05T19:38:56Z'),
  });
});

test('a key that the store finds good after its end was renewed', () => {
  const license_key = { ...shown, expires_at: '2026-01-01T00:00:00.000000Z' };
  expect(licenseIn({ ...good, license_key })).toMatchObject({ enabled: true, expiresAt: null });
});

test.each([
  [{ valid: true }, 'no license key'],
  [{ ...good, meta: null }, 'no license key'],
  [{ valid: false, error: 'Service is down' }, 'not about a license key'],
  [{ ...good, license_key: { ...shown, key: 'ANOTHER' } }, 'another license key'],
  [{ valid: 'yes' }, 'valid'],
  [{ error: 'x' }, 'valid'],
])('%o is no answer about this key', (body, fault) => {
  expect(readValidated(body, { storedKey: key, now }, 200)).toEqual({
    fault: expect.stringContaining(fault) as string,
  });
});

test('an answer about another instance is no answer about this one', () => {
  const instance = { id: 'other', name: 'x' };
  expect(readValidated({ ...good, instance }, { storedKey: `${key} #mine`, now }, 200)).toEqual({
    fault: expect.stringContaining('another instance') as string,
  });
});

test.each(['license_key is disabled.', 'This license key is expired.', 'This license key has expired.'])(
  '"%s" says no about a key that is not shown',
  (error) => {
    const reading = readValidated({ valid: false, error }, { storedKey: key, now }, 400);
    expect(reading).toMatchObject({ value: { enabled: false }, shows: 'enabled' });
  },
);

test('a key that has ended here is answered as an expired one', () => {
  expect(validateAnswer({ ...licenseIn(good), enabled: false, status: 'expired' })).toEqual({
    status: 200,
    body: { ...good, valid: false, error: texts.expired, license_key: { ...shown, status: 'expired' } },
  });
});

test('an instance that was deactivated here is unknown, and one seat less is in use', () => {
  const waiting = { ...licenseIn(good), enabled: false };
  expect(isDeactivated(waiting)).toBe(true);
  expect(isDeactivated(licenseIn(good))).toBe(false);
  expect(
    isDeactivated({ ...licenseIn({ ...good, valid: false, error: texts.expired }), enabled: false }),
  ).toBe(false);
  expect(validateAnswer(waiting)).toMatchObject({
    status: 404,
    body: { valid: false, error: texts.noInstance },
  });
  expect(deactivateAnswer(waiting)).toEqual({
    status: 200,
    body: { deactivated: true, error: null, license_key: { ...shown, activation_usage: 1 }, meta },
  });
  const last = licenseIn({ ...good, license_key: { ...shown, activation_usage: 1 } });
  expect(deactivateAnswer(last)).toMatchObject({
    body: { license_key: { activation_usage: 0, status: 'inactive' } },
  });
});

test('nothing is answered for a license that Lemon Squeezy has not shown', () => {
  const license = { ...licenseIn(good), extra: { product_name: 'Shop' } };
  expect(validateAnswer(license)).toBeNull();
});

test('a buyer who makes a name long does not push out the status of the key', () => {
  const long = { ...meta, customer_name: 'x'.repeat(20_000) };
  const { extra } = licenseIn({ ...good, meta: long, future: 'y'.repeat(9_000) });
  expect(extra).toEqual({ ...good, meta: { store_id: 76833, customer_email: 'buyer@example.com' } });
});

test.each([
  [
    { licenseKey: ` ${key} `, instanceId: '' },
    { licenseKey: key, instanceId: null, instanceName: null },
  ],
  [
    { licenseKey: key, instanceId: 7 },
    { licenseKey: key, instanceId: '7', instanceName: null },
  ],
])('of %o the call is %o', (values, call) => {
  expect(readCall(values, 'validate')).toEqual(call);
});

test.each([
  [key, null, key],
  [key, 'i', `${key} #i`],
  [`${key} #i`, null, null],
  ['  ', null, null],
])('the key %o with the instance %o is stored as %o', (licenseKey, instanceId, stored) => {
  expect(keyOfCall(licenseKey, instanceId)).toBe(stored);
});
