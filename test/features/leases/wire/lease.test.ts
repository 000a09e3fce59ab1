import { expect, test, vi } from 'vitest';
import { signDocument } from '../../../../src/features/leases/documents.ts';
import { parseLeaseClaims, serializeLease } from '../../../../src/features/leases/wire/lease.ts';
import type * as licenses from '../../../../src/wire/license.ts';
import { serializeLicense } from '../../../../src/wire/license.ts';
import { documentClaims, keyPair, leaseIssuer } from '../support/lease-builders.ts';

/** A later version of the API, whose licenses have one more member. */
vi.mock('../../../../src/wire/license.ts', async (importOriginal) => {
  const original = await importOriginal<typeof licenses>();
  const { z } = await import('zod');
  return {
    ...original,
    licenseObject: original.licenseObject.extend({ plan: z.string() }),
    serializeLicense: (license: Parameters<typeof original.serializeLicense>[0]) => ({
      ...original.serializeLicense(license),
      plan: 'gold',
    }),
  };
});

test('a new member of licenses, of the API and of the seats is not signed into a lease', async () => {
  const [device, signing] = await Promise.all([keyPair(), keyPair()]);
  const { lease: example } = documentClaims(device, signing);
  const claims = { ...example, license: { ...example.license, date: '2026-01-02T03:04:05+00:00' } };
  const lease = parseLeaseClaims(claims);
  const license = { ...lease.license, plan: 'gold' };
  expect(serializeLicense(license)).toMatchObject({ plan: 'gold' });
  const seats = { limit: 3, taken: 1, reserved: 1 };
  const digest = Buffer.from(claims.request, 'base64url').toString('hex');
  const document = await signDocument(
    'lease',
    serializeLease({ ...lease, license, seats }, leaseIssuer, digest),
    signing,
  );
  const payload = Buffer.from(document.split('.')[1] ?? '', 'base64url').toString();
  expect(payload).toBe(JSON.stringify(claims));
});
