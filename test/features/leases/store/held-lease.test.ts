import { expect, test } from 'vitest';
import type { HeldLease } from '../../../../src/features/leases/domain/lease.ts';
import { at, buildLicense, createTestStore } from '../../../support/builders/store-builders.ts';
import { buildHeldLease } from '../support/records.ts';

test('a held lease is stored as a whole, replaced and removed', async () => {
  await using store = createTestStore();
  const { heldLeases } = store.writing.transaction;
  const held = buildHeldLease({
    licenseKey: 'KEY-1',
    request: { text: 'a.b.c', act: 'take', uses: { recorded: 1, returned: 0 } },
    uses: { recorded: 2, returned: 1 },
  });
  const answered: HeldLease = {
    ...held,
    activationId: 'a',
    document: {
      kind: 'lease',
      text: 'd.e.f',
      issuedAt: at,
      refreshAt: at + 1,
      expiresAt: at + 2,
      license: buildLicense({ licenseKey: 'KEY-1' }),
    },
    rev: 5,
    request: null,
    confirmedUses: { recorded: 1, returned: 0 },
    wanted: 'ended',
  };
  heldLeases.put(held);
  expect(heldLeases.get('KEY-1')).toEqual(held);
  heldLeases.put(answered);
  heldLeases.put({ ...held, licenseKey: 'KEY-0' });
  expect(heldLeases.all()).toEqual([{ ...held, licenseKey: 'KEY-0' }, answered]);
  expect(heldLeases.count()).toBe(2);
  heldLeases.remove('KEY-0');
  expect(heldLeases.get('KEY-0')).toBeNull();
});
