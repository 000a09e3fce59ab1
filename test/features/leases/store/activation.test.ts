import { describe, expect, test } from 'vitest';
import { movesWithinMs, type Activation } from '../../../../src/features/leases/domain/lease.ts';
import type { ActivationFilter } from '../../../../src/features/leases/service/tables.ts';
import { openAuthorityStore } from '../../../support/app/authority-store.ts';
import type { AuthorityStore } from '../../../support/app/engine.ts';
import { account, at, buildLicense, page, product } from '../../../support/builders/store-builders.ts';
import { buildActivation } from '../support/records.ts';

/** An account with the products press and abc. */
async function catalogue(store: AuthorityStore): Promise<void> {
  await store.write(async ({ accounts, products }) => {
    await accounts.add(account, 'digest');
    await products.add(product, 'secret-1');
    await products.add({ ...product, productKey: 'abc' }, 'secret-2');
  });
}

describe('activations in the store of an authority', () => {
  test('an activation is found by its id and its device, and listed by every filter', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    const { activations } = store.reader;
    const ended = buildActivation({
      activationId: 'b',
      device: 'd2',
      state: 'ended',
      seatUntil: at,
      copiedAt: at,
    });
    await store.write(async (transaction) => {
      await transaction.activations.lockLicense('KEY-1');
      await transaction.activations.put(buildActivation({ seq: 1 }));
      await transaction.activations.put(buildActivation());
      await transaction.activations.put(ended);
      await transaction.activations.put(
        buildActivation({ activationId: 'c', licenseKey: 'KEY-2', productKey: 'abc' }),
      );
    });
    expect(await activations.get('a')).toEqual(buildActivation());
    expect(await activations.get('z')).toBeNull();
    expect(await activations.ofDevice('KEY-1', 'd2')).toEqual(ended);
    expect(await activations.ofDevice('KEY-2', 'd2')).toBeNull();
    expect((await activations.ofLicense('KEY-1', 5)).map(({ activationId }) => activationId)).toEqual([
      'a',
      'b',
    ]);
    const idsOf = async (filter: ActivationFilter): Promise<string> => {
      const listed = await activations.list(filter, page);
      expect(await activations.count(filter)).toBe(listed.length);
      return listed.map(({ activationId }) => activationId).join('');
    };
    expect(await idsOf({})).toBe('abc');
    expect(await idsOf({ licenseKey: 'KEY-1' })).toBe('ab');
    expect(await idsOf({ productKey: 'abc' })).toBe('c');
    expect(await idsOf({ licenseKey: 'KEY-1', state: 'ended' })).toBe('b');
    expect(await idsOf({ seatAt: at })).toBe('ac');
    expect(await idsOf({ copied: true })).toBe('b');
    const searched = async (text: string, keys: 'anywhere' | 'shown' = 'anywhere'): Promise<string> =>
      await idsOf({ search: { text, keys } });
    expect([await searched('APTO'), await searched('ey-1'), await searched('none')]).toEqual([
      'abc',
      'ab',
      '',
    ]);
    expect([await searched('Y-1', 'shown'), await searched('KEY-2', 'shown')]).toEqual(['', 'c']);
    await store.write(async ({ licenses }) => {
      await licenses.add(buildLicense({ licenseKey: 'KEY-2', buyerEmail: 'ann@example.com' }));
    });
    expect(await searched('ANN@')).toBe('c');
    expect(await idsOf({ tenant: { accountId: 'other', productKey: null } })).toBe('');
    expect(await idsOf({ tenant: { accountId: 'default', productKey: 'press' } })).toBe('ab');
  });

  test('the taken seats and the moves of a license are counted', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    const { activations } = store.reader;
    await store.write(async (transaction) => {
      await transaction.activations.put(buildActivation({ movedAt: [at - 5, at] }));
      await transaction.activations.put(
        buildActivation({ activationId: 'b', device: 'd2', movedAt: [at + 5] }),
      );
      await transaction.activations.put(
        buildActivation({ activationId: 'c', licenseKey: 'KEY-2', movedAt: [at] }),
      );
    });
    expect(await activations.seatsTaken('KEY-1', at, '')).toBe(2);
    expect(await activations.seatsTaken('KEY-1', at, 'a')).toBe(1);
    expect(await activations.seatsTaken('KEY-1', at + 20, '')).toBe(0);
    expect(await activations.movesSince('KEY-1', at)).toBe(2);
    expect(await activations.movesSince('KEY-1', at - 5)).toBe(3);
  });

  test('the leases that end are read by their ends, and at one instant by their activations', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    await store.write(async ({ activations }) => {
      for (const [activationId, expiresAt] of [
        ['later', at + 1],
        ['b', at],
        ['a', at],
      ] as const)
        await activations.put(buildActivation({ activationId, device: activationId, expiresAt }));
    });
    const { activations } = store.reader;
    expect(await activations.expiring({ at: at - 1, key: null }, at, 1)).toEqual([{ at, key: 'a' }]);
    const others = [
      { at, key: 'b' },
      { at: at + 1, key: 'later' },
    ];
    expect(await activations.expiring({ at, key: 'a' }, at + 1, 9)).toEqual(others);
    expect(await activations.expiring({ at, key: null }, at + 1, 9)).toEqual(others.slice(1));
  });

  test('only the oldest devices without a seat are removed, and never a blocked device or one whose move counts', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    const { activations } = store.reader;
    const gone = { state: 'ended', seatUntil: at - 1, uses: { recorded: 0, returned: 0 } } as const;
    await store.write(async (transaction) => {
      const put = async (activationId: string, changes: Partial<Activation>): Promise<void> =>
        await transaction.activations.put(
          buildActivation({ activationId, device: activationId, ...changes }),
        );
      await put('a', { ...gone, renewedAt: at - 9 });
      await put('b', { ...gone, renewedAt: at - 8 });
      await put('c', { ...gone, renewedAt: at - 7 });
      await put('blocked', { ...gone, state: 'blocked', renewedAt: 0 });
      await put('lapsed', { seatUntil: at - 1, renewedAt: 0 });
      await put('moved', { ...gone, movedAt: [at - movesWithinMs + 1], renewedAt: 0 });
      await put('moved before', { ...gone, movedAt: [at - movesWithinMs], renewedAt: 0 });
      await put('active', { renewedAt: 0 });
      await put('seated', { ...gone, seatUntil: at + 1, renewedAt: 0 });
      await transaction.activations.pruneEnded('KEY-1', 2, at);
    });
    const kept = await activations.list({}, page);
    expect(kept.map(({ activationId }) => activationId)).toEqual([
      'active',
      'b',
      'blocked',
      'c',
      'moved',
      'seated',
    ]);
  });
});
