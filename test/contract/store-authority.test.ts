import { describe, expect, test } from 'vitest';
import { licenseAfter, type License, type LicenseTrigger } from '../../src/domain/license.ts';
import { quoteCart, type Redemption } from '../../src/domain/checkout/quote.ts';
import { openAuthorityStore } from '../support/app/authority-store.ts';
import type { AuthorityStore } from '../support/app/engine.ts';
import { buildCart, buildCoupon, buildTerms } from '../support/builders/coupon-builders.ts';
import { maxFound } from '../../src/domain/search.ts';
import type { LicenseFilter, PurchaseFilter } from '../../src/service/tables.ts';
import { account, at, buildLicense, page, product, buildToken } from '../support/builders/store-builders.ts';

const terms = buildTerms({
  discount: { type: 'percent', percentOff: 12.5 },
  code: 'Spring',
  endAt: at,
  minimumPurchaseAmount: 500,
  usageLimit: 3,
});

/** An account with the products press and abc. */
async function catalogue(store: AuthorityStore): Promise<void> {
  await store.write(async ({ accounts, products }) => {
    await accounts.add(account, 'digest');
    await products.add(product, 'secret-1');
    await products.add({ ...product, productKey: 'abc' }, 'secret-2');
  });
}

async function add(store: AuthorityStore, ...licenses: readonly License[]): Promise<void> {
  await store.write(async (transaction) => {
    for (const license of licenses) await transaction.licenses.add(license);
  });
}

function soldTo(licenseKey: string, buyerEmail: string, productKey = 'press'): License {
  return buildLicense({ licenseKey, buyerEmail, productKey });
}

/** Checks what searches find before the licenses are indexed, and after. */
async function beforeAndAfterIndexing(store: AuthorityStore, check: () => Promise<void>): Promise<void> {
  await check();
  store.index?.();
  await check();
}

function buildRedemption(changes: Partial<Redemption> = {}): Redemption {
  const couponId = changes.couponId ?? 3;
  const cart = buildCart({ amount: 1000 }, { collectionIds: ['set'], recurring: true });
  const quote = quoteCart(buildCoupon({ id: couponId }), cart, { now: at, redemptions: 0 });
  return { order: 'A-1', couponId, cart, quote, redeemedAt: at, ...changes };
}

describe('the store of an authority', () => {
  test('an account is found by its id and by the digest of its API key', async () => {
    await using store = await openAuthorityStore();
    const { accounts } = store.reader;
    await store.write(async (transaction) => {
      await transaction.accounts.add(account, 'digest-1');
      await transaction.accounts.setKeyDigest('default', 'digest-2');
      expect(await transaction.accounts.keyDigest('default')).toBe('digest-2');
    });
    expect(await accounts.get('default')).toEqual(account);
    expect(await accounts.byKeyDigest('digest-1')).toBeNull();
    expect(await accounts.byKeyDigest('digest-2')).toEqual(account);
    expect(await accounts.list({}, page)).toEqual([account]);
    expect(await accounts.count({ tenant: { accountId: 'other', productKey: null } })).toBe(0);
    expect(await accounts.count({})).toBe(1);
  });

  test('a product is found by its key and by the digest of its secret', async () => {
    await using store = await openAuthorityStore();
    const { products } = store.reader;
    const recurring = { ...product, productKey: 'abc', recurring: true };
    await store.write(async (transaction) => {
      await transaction.accounts.add(account, 'digest');
      await transaction.products.add(product, 'secret-1');
      await transaction.products.add(recurring, 'secret-2');
      await transaction.products.setSecretDigest('press', 'secret-3');
      expect(await transaction.products.secretDigest('press')).toBe('secret-3');
    });
    expect(await products.get('abc')).toEqual(recurring);
    expect(await products.bySecretDigest('secret-1')).toBeNull();
    expect(await products.bySecretDigest('secret-3')).toEqual(product);
    expect(await products.list({}, { limit: 1, offset: 1 })).toEqual([product]);
    const leaseTerms = { seats: 3, holdMs: 0, termMs: 60_000, refreshMs: 10_000, showsEmail: true };
    const archived = { ...recurring, name: 'Old', archivedAt: at, leaseTerms };
    await store.write(async (transaction) => await transaction.products.put(archived));
    expect(await products.list({ archived: true }, page)).toEqual([archived]);
    expect([await products.count({}), await products.count({ archived: false })]).toEqual([2, 1]);
  });

  test('keys are sorted by their bytes, in any locale of the database', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    const keys = ['B', 'a', 'Z', '_', 'é', 'b', 'A-', 'A', '10', '9'];
    await add(store, ...keys.map((licenseKey) => buildLicense({ licenseKey })));
    const listed = await store.reader.licenses.list({}, page);
    expect(listed.map(({ licenseKey }) => licenseKey)).toEqual(keys.toSorted());
    const after = await store.reader.licenses.after({}, 'Z', 10);
    expect(after.map(({ licenseKey }) => licenseKey)).toEqual(['_', 'a', 'b', 'é']);
  });

  test('a collection keeps the order of its products', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    const collection = { collectionId: 'c', accountId: 'default', name: 'C', productKeys: ['press', 'abc'] };
    await store.write(async ({ collections }) => await collections.add(collection));
    expect(await store.reader.collections.get('c')).toEqual(collection);
    const changed = { ...collection, name: 'D', productKeys: ['abc', 'press'] };
    await store.write(async ({ collections }) => await collections.put(changed));
    expect(await store.reader.collections.list({}, page)).toEqual([changed]);
    expect(await store.reader.collections.count({})).toBe(1);
    expect(await store.reader.collections.get('d')).toBeNull();
  });

  test('licenses are added once, changed, and listed by every filter', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    const { licenses } = store.reader;
    const one = buildLicense();
    const two = buildLicense({ licenseKey: 'KEY-2', enabled: false, uses: 7 });
    const three = buildLicense({ licenseKey: 'KEY-3', productKey: 'abc', buyerEmail: 'b@example.com' });
    await store.write(async (transaction) => {
      for (const license of [three, two, one]) {
        expect(await transaction.licenses.add({ ...license, uses: 3, enabled: !license.enabled })).toBe(true);
      }
      expect(await transaction.licenses.add({ ...one, productKey: 'abc' })).toBe(false);
      for (const license of [three, two, one]) await transaction.licenses.setState(license, false);
    });
    expect(await licenses.get('KEY-2')).toMatchObject(two);
    expect(await licenses.get('KEY-4')).toBeNull();
    const cases = [
      [{}, [one, two, three]],
      [{ productKey: 'press' }, [one, two]],
      [{ enabled: true }, [one, three]],
      [{ buyerEmail: 'B@Example.com' }, [three]],
      [{ licenseKey: 'KEY-2' }, [two]],
      [{ licenseKey: 'KEY-2', enabled: true }, []],
      [{ tenant: { accountId: 'default', productKey: null } }, [one, two, three]],
      [{ tenant: { accountId: 'default', productKey: 'abc' }, productKey: 'press' }, []],
      [{ tenant: { accountId: 'other', productKey: null }, licenseKey: 'KEY-2' }, []],
      [{ productKey: 'press', enabled: false }, [two]],
      [{ productKey: 'press', buyerEmail: 'b@example.com' }, []],
      [{ productKey: undefined, enabled: undefined, buyerEmail: 'a@example.com' }, [one, two]],
    ] as const;
    const unsold = { purchaseId: null, refundedAt: null };
    for (const [filter, expected] of cases) {
      expect(await licenses.list(filter, page)).toMatchObject(
        expected.map((license) => ({ ...license, ...unsold })),
      );
      expect(await licenses.count(filter)).toBe(expected.length);
    }
    expect(await licenses.list({}, { limit: 1, offset: 1 })).toMatchObject([{ ...two, ...unsold }]);
    expect(await licenses.after({ productKey: 'press' }, 'KEY-1', 10)).toMatchObject([two]);
  });

  test('a license is changed by the rule of the domain, and its history records the change', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    const triggers = ['usage', 'decrease', 'enable', 'disable'] as const;
    const tenant = { accountId: 'default', productKey: null };
    for (const uses of [-1, 0, 1, 5]) {
      for (const enabled of [true, false]) {
        for (const trigger of triggers) {
          const before = buildLicense({ licenseKey: `${uses} ${enabled} ${trigger}`, uses, enabled });
          await add(store, before);
          const { licenseKey } = before;
          const change = { tenant, licenseKey, trigger, historyEntry: { at, credential: 'product:press' } };
          const changed = await store.write(async ({ licenses }) => await licenses.change(change));
          const after = licenseAfter(before, trigger);
          expect(changed).toMatchObject({ before, after });
          expect(await store.reader.licenses.get(licenseKey)).toMatchObject(after);
          const isChanged = after.uses !== uses || after.enabled !== enabled;
          const states = { before: { uses, enabled }, after: { uses: after.uses, enabled: after.enabled } };
          const entry = { licenseKey, at, change: trigger, credential: 'product:press', ...states };
          expect(await store.reader.history.list(licenseKey, page)).toEqual(
            isChanged ? [{ ...entry, number: 1 }] : [],
          );
        }
      }
    }
  });

  test('a use beyond the limit of a license changes nothing, and a use taken back makes room', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    await add(
      store,
      buildLicense({ uses: 1, usesLimit: 2 }),
      buildLicense({ licenseKey: 'KEY-0', usesLimit: 0 }),
    );
    const tenant = { accountId: 'default', productKey: null };
    const uses = async (trigger: 'usage' | 'decrease', licenseKey = 'KEY-1') => {
      const change = { tenant, licenseKey, trigger, historyEntry: { at, credential: 'product:press' } };
      return (await store.write(async ({ licenses }) => await licenses.change(change)))?.after.uses;
    };
    expect([await uses('usage'), await uses('usage'), await uses('usage', 'KEY-0')]).toEqual([2, 2, 0]);
    expect([await uses('decrease'), await uses('usage')]).toEqual([1, 2]);
    expect(await store.reader.licenses.get('KEY-1')).toMatchObject({ uses: 2, revision: 3 });
    expect(await store.reader.history.count('KEY-1')).toBe(3);
    expect(await store.reader.history.count('KEY-0')).toBe(0);
  });

  test('the terms of a license are stored, changed and removed, and each change counts', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    const others = {
      entitlements: ['export', 'pro'],
      metadata: { 'order "1"': ['ä'] },
      seats: 3,
      leaseTermMs: 60_000,
    };
    const licensed = buildLicense({ expiresAt: at, graceUntil: at + 1_000, usesLimit: 9, terms: others });
    await add(store, licensed, buildLicense({ licenseKey: 'KEY-2' }));
    const { licenses } = store.reader;
    // Concurrent reads of one key share their statement on PostgreSQL.
    expect(await Promise.all([licenses.get('KEY-1'), licenses.get('KEY-1')])).toEqual(
      [0, 0].map((revision) => ({ ...licensed, revision })),
    );
    const bare = { ...buildLicense({ licenseKey: 'KEY-2' }), revision: 0 };
    expect(await licenses.get('KEY-2')).toEqual(bare);
    expect(await licenses.after({}, '', 10)).toEqual([{ ...licensed, revision: 0 }, bare]);
    expect(await licenses.list({}, page)).toMatchObject([{ terms: others }, { licenseKey: 'KEY-2' }]);
    await store.write(async (transaction) => await transaction.licenses.setGrace('KEY-1', 5_000));
    const { graceUntil: _, ...rest } = licensed;
    expect(await licenses.get('KEY-1')).toEqual({ ...rest, graceUntil: at + 5_000, revision: 1 });
    await store.write(async (transaction) => await transaction.licenses.setGrace('KEY-2', 5_000));
    expect(await licenses.get('KEY-2')).toEqual(bare);
    await store.write(async (transaction) => await transaction.licenses.setGrace('KEY-1', 0));
    expect(await licenses.get('KEY-1')).toEqual({ ...rest, graceUntil: null, revision: 2 });
    await store.write(async (transaction) => await transaction.licenses.setTerms({ licenseKey: 'KEY-1' }));
    expect(await licenses.get('KEY-1')).toEqual({ ...buildLicense(), revision: 3 });
  });

  test('a product is found whose licenses do not all have its grace, until they have it', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    const found = async () => await store.write(async ({ products }) => await products.halfGraced());
    expect(await found()).toBeNull();
    await store.write(async ({ products }) => {
      await products.put({ ...product, licenseTerms: { ...product.licenseTerms, expiryGraceMs: 5_000 } });
      await products.setGracedTo('press', 'KEY-1');
    });
    expect(await found()).toEqual({ productKey: 'press', graceMs: 5_000, gracedTo: 'KEY-1' });
    await store.write(async ({ products }) => await products.setGracedTo('press', null));
    expect(await found()).toBeNull();
  });

  test('the licenses that end are read by their ends, and at one instant by their keys', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    await add(
      store,
      buildLicense({ licenseKey: 'LATER', expiresAt: at + 1, graceUntil: at + 3 }),
      ...['C', 'A', 'B'].map((licenseKey) => buildLicense({ licenseKey, expiresAt: at })),
      buildLicense({ licenseKey: 'OFF', expiresAt: at, enabled: false }),
      buildLicense({ licenseKey: 'EVER' }),
    );
    const { licenses } = store.reader;
    const keys = async (...range: Parameters<typeof licenses.ending>): Promise<string[]> =>
      (await licenses.ending(...range)).map(({ key }) => key);
    expect(await licenses.ending('date', { at: at - 1, key: null }, at, 1)).toEqual([{ at, key: 'A' }]);
    expect(await keys('date', { at, key: 'A' }, at + 1, 9)).toEqual(['B', 'C', 'LATER']);
    expect(await keys('date', { at, key: null }, at + 1, 9)).toEqual(['LATER']);
    expect(await keys('grace', { at, key: 'B' }, at + 2, 9)).toEqual(['C']);
    expect(await keys('grace', { at, key: null }, at + 3, 9)).toEqual(['LATER']);
  });

  test('a license outside the tenant of a credential is not changed, and a license without a history has an empty one', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    await add(store, buildLicense());
    const use = async (accountId: string, productKey: string | null, licenseKey = 'KEY-1') => {
      const change = { licenseKey, trigger: 'usage' as LicenseTrigger & 'usage', historyEntry: null };
      return await store.write(
        async ({ licenses }) => await licenses.change({ ...change, tenant: { accountId, productKey } }),
      );
    };
    expect(await use('other', null)).toBeNull();
    expect(await use('default', 'abc')).toBeNull();
    expect(await use('default', null, 'KEY-2')).toBeNull();
    expect((await use('default', 'press'))?.after.uses).toBe(1);
    expect((await use('default', null))?.after.uses).toBe(2);
    expect(await store.reader.history.count('KEY-1')).toBe(0);
  });

  test('a purchase stores the time of its refund, and is listed by every filter', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    const sold = buildLicense();
    const other = buildLicense({ licenseKey: 'KEY-2', productKey: 'abc', buyerEmail: 'B@example.com' });
    await add(store, sold, other);
    const purchase = { purchaseId: 'p', licenseKey: 'KEY-1', createdAt: at, refundedAt: null };
    const later = { purchaseId: 'q', licenseKey: 'KEY-2', createdAt: at + 10, refundedAt: null };
    await store.write(async ({ purchases }) => {
      await purchases.add(purchase);
      await purchases.add(later);
    });
    const { purchases } = store.reader;
    expect(await purchases.get('p')).toEqual(purchase);
    const refunded = { ...purchase, refundedAt: at + 1 };
    await store.write(async (transaction) => await transaction.purchases.setRefunded(refunded));
    expect(await purchases.get('p')).toEqual(refunded);
    const first = { purchase: refunded, license: sold };
    const second = { purchase: later, license: other };
    const cases = [
      [{}, [second, first]],
      [{ licenseKey: 'KEY-1' }, [first]],
      [{ buyerEmail: 'b@Example.com' }, [second]],
      [{ productKey: 'press' }, [first]],
      [{ refunded: true }, [first]],
      [{ refunded: false }, [second]],
      [{ since: at + 1 }, [second]],
      [{ since: at, until: at }, [first]],
      [{ tenant: { accountId: 'default', productKey: 'abc' } }, [second]],
      [{ tenant: { accountId: 'other', productKey: null } }, []],
    ] as const;
    for (const [filter, expected] of cases) {
      expect(await purchases.list(filter, page)).toMatchObject(expected);
      expect(await purchases.count(filter)).toBe(expected.length);
    }
    expect(await purchases.after({}, 'p', 10)).toMatchObject([second]);
  });

  test('a coupon code is unique per account in any letter case, and no coupon id is reused', async () => {
    await using store = await openAuthorityStore();
    await store.write(async ({ accounts }) => {
      await accounts.add(account, 'digest-1');
      await accounts.add({ ...account, accountId: 'other' }, 'digest-2');
    });
    const make = async (accountId: string, code: string, id?: number) =>
      await store.write(async ({ coupons }) => await coupons.add(accountId, { ...terms, code }, id));
    const coupon = await make('default', 'Spring');
    expect(coupon).toEqual({ ...terms, id: 1 });
    const { coupons } = store.reader;
    expect(await coupons.byCode('default', 'SPRING')).toEqual(coupon);
    await expect(make('default', 'sprinG')).rejects.toThrow(/unique/i);
    const second = await make('other', 'Spring');
    expect(second.id).toBeGreaterThan(1);
    expect(await coupons.get('other', 1)).toBeNull();
    expect((await make('default', 'Wanted', 70)).id).toBe(70);
    await store.write(async (transaction) => await transaction.coupons.remove(70));
    expect((await make('default', 'Next')).id).toBe(71);
    expect((await make('default', 'Low', 12)).id).toBe(12);
    expect((await make('default', 'After')).id).toBe(72);
    await store.write(async (transaction) => {
      expect([await transaction.coupons.isTaken(12), await transaction.coupons.isTaken(70)]).toEqual([
        true,
        false,
      ]);
    });
    expect((await coupons.after('default', 12, 10)).map(({ id }) => id)).toEqual([71, 72]);
    expect(await coupons.count('default')).toBe(4);
  });

  test('a coupon stores its scope and its discount, and is changed as a whole', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    const added = await store.write(async ({ collections, coupons }) => {
      await collections.add({ collectionId: 'c', accountId: 'default', name: 'C', productKeys: [] });
      return [
        await coupons.add('default', { ...terms, scope: { type: 'single', productKey: 'press' } }),
        await coupons.add('default', {
          ...terms,
          code: 'b',
          scope: { type: 'collection', collectionId: 'c' },
        }),
        await coupons.add('default', { ...terms, code: 'c', discount: { type: 'amount', amountOff: 250 } }),
      ];
    });
    expect(await store.reader.coupons.list('default', page)).toEqual(added);
    const changed = { ...terms, id: added[0]?.id ?? 0, code: 'Other', notes: 'n' };
    await store.write(async ({ coupons }) => await coupons.put(changed));
    expect(await store.reader.coupons.byCode('default', 'other')).toEqual(changed);
  });

  test('coupons are listed by code, product and state', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    const [ended, full, scheduled, active] = await store.write(async ({ coupons, redemptions }) => {
      const make = async (code: string, changes: Parameters<typeof buildTerms>[0]) =>
        await coupons.add('default', { ...terms, endAt: null, usageLimit: null, code, ...changes });
      const made = [
        await make('ENDED', { endAt: at - 1 }),
        await make('FULL', { usageLimit: 1, scope: { type: 'single', productKey: 'press' } }),
        await make('SCHEDULED', { startAt: at + 1 }),
        await make('ACTIVE', { startAt: at, endAt: at, usageLimit: 2 }),
      ];
      for (const coupon of made) {
        await redemptions.add('default', buildRedemption({ order: coupon.code, couponId: coupon.id }));
      }
      return made;
    });
    const cases = [
      [{ state: { is: 'ended', at } }, [ended]],
      [{ state: { is: 'used_up', at } }, [full]],
      [{ state: { is: 'scheduled', at } }, [scheduled]],
      [{ state: { is: 'active', at } }, [active]],
      [{ code: 'full' }, [full]],
      [{ productKey: 'press' }, [full]],
      [{ productKey: 'press', state: { is: 'active', at } }, []],
    ] as const;
    for (const [filter, expected] of cases) {
      expect(await store.reader.coupons.list('default', page, filter)).toEqual(expected);
      expect(await store.reader.coupons.count('default', filter)).toBe(expected.length);
    }
  });

  test('a redemption is found by its account and order, and counted for its coupon', async () => {
    await using store = await openAuthorityStore();
    const [one, two] = [buildRedemption(), buildRedemption({ order: 'A-2' })];
    await store.write(async (transaction) => {
      for (const redemption of [one, two]) await transaction.redemptions.add('default', redemption);
      await transaction.redemptions.add('default', buildRedemption({ order: 'A-3', couponId: 4 }));
      await transaction.redemptions.add('other', buildRedemption());
    });
    const { redemptions } = store.reader;
    expect(await redemptions.get('default', 'A-1')).toEqual(one);
    expect(await redemptions.get('other', 'A-2')).toBeNull();
    expect([await redemptions.countOf('default', 3), await redemptions.countOf('default', 5)]).toEqual([
      2, 0,
    ]);
    const listed = [
      { ...one, id: 1 },
      { ...two, id: 2 },
    ];
    expect(await redemptions.listOf('default', 3, page)).toEqual(listed);
    expect(await redemptions.listOf('default', 3, { limit: 1, offset: 1 })).toEqual(listed.slice(1));
    expect(await redemptions.ordersOf('default', 3, 10)).toEqual(['A-2', 'A-1']);
    expect(await redemptions.ordersOf('default', 3, 1)).toEqual(['A-2']);
    const again = buildRedemption({ couponId: 9 });
    await expect(
      store.write(async (transaction) => await transaction.redemptions.add('default', again)),
    ).rejects.toThrow(/unique/i);
    expect(await redemptions.countOf('default', 9)).toBe(0);
  });

  test('a removed redemption is no longer counted', async () => {
    await using store = await openAuthorityStore();
    await store.write(async ({ redemptions }) => {
      await redemptions.add('default', buildRedemption());
      expect(await redemptions.remove('other', 'A-1')).toBe(false);
      expect(await redemptions.remove('default', 'A-1')).toBe(true);
      expect(await redemptions.remove('default', 'A-1')).toBe(false);
      expect(await redemptions.get('default', 'A-1')).toBeNull();
      expect(await redemptions.countOf('default', 3)).toBe(0);
      await redemptions.add('default', buildRedemption());
    });
    expect(await store.reader.redemptions.countOf('default', 3)).toBe(1);
  });

  test('a token is found by its digest until it is removed', async () => {
    await using store = await openAuthorityStore();
    const scopes = ['verify', 'coupons:read'] as const;
    const token = buildToken({ tokenId: 't', scopes, productKey: 'press', label: 'shop', expiresAt: at + 9 });
    await store.write(async ({ tokens }) => {
      await tokens.add(token, 'digest');
      await tokens.add({ ...token, tokenId: 'u', scopes: [] }, 'digest-2');
      expect(await tokens.byDigest('digest')).toEqual(token);
      expect((await tokens.get('u'))?.scopes).toEqual([]);
      await tokens.setLastUsed('t', at + 5);
      await tokens.setLastUsed('t', at + 4);
      expect(await tokens.get('t')).toEqual({ ...token, lastUsedAt: at + 5 });
      await tokens.remove('t');
    });
    expect(await store.reader.tokens.byDigest('digest')).toBeNull();
    expect(await store.reader.tokens.list({}, page)).toHaveLength(1);
    expect(await store.reader.tokens.count({})).toBe(1);
  });

  test('a rotated credential stays valid until it is pruned, and only the last one of an owner', async () => {
    await using store = await openAuthorityStore();
    const { oldCredentials } = store.reader;
    const old = { kind: 'api_key', id: 'default', until: at } as const;
    await store.write(async (transaction) => {
      await transaction.oldCredentials.put(old, 'digest-1');
      await transaction.oldCredentials.put({ ...old, until: at + 1 }, 'digest-2');
    });
    expect(await oldCredentials.byDigest('api_key', 'digest-1')).toBeNull();
    expect(await oldCredentials.byDigest('product_secret', 'digest-2')).toBeNull();
    expect(await oldCredentials.byDigest('api_key', 'digest-2')).toEqual({ ...old, until: at + 1 });
    await store.write(async (transaction) => await transaction.oldCredentials.prune(at));
    expect(await oldCredentials.byDigest('api_key', 'digest-2')).not.toBeNull();
    await store.write(async (transaction) => await transaction.oldCredentials.prune(at + 1));
    expect(await oldCredentials.byDigest('api_key', 'digest-2')).toBeNull();
  });

  test('a license is found by any part of its key or of its buyer, and page by page', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    await add(
      store,
      soldTo('ABCDE-1', 'x@example.com'),
      soldTo('ABCDE-2', 'Abc@example.com'),
      soldTo('ABX', 'y@example.com', 'abc'),
      soldTo('abcd', 'z@example.com'),
      soldTo('ZZZ', 'ABCDEF@example.com', 'abc'),
      soldTo('ZZ%_', 'äb@example.com'),
      soldTo(`Q"'-\\`, 'o"neil@example.org'),
    );
    const { licenses } = store.reader;
    const found = async (text: string, filter: LicenseFilter = {}): Promise<string> => {
      const search = { text, keys: 'anywhere' } as const;
      const listed = await licenses.list({ ...filter, search }, page);
      expect(await licenses.count({ ...filter, search })).toBe(listed.length);
      return listed.map(({ licenseKey }) => licenseKey).join(' ');
    };
    await beforeAndAfterIndexing(store, async () => {
      expect(await found('abc')).toBe('ABCDE-1 ABCDE-2 ZZZ abcd');
      expect(await found('BCDe')).toBe('ABCDE-1 ABCDE-2 ZZZ');
      expect(await found('E-1')).toBe('ABCDE-1');
      expect(await found('bc@EXAMPLE.com')).toBe('ABCDE-2');
      expect(await found('Z%_')).toBe('ZZ%_');
      expect(await found('z_%')).toBe('');
      expect(await found('äb@')).toBe('ZZ%_');
      expect(await found('example.org')).toBe(`Q"'-\\`);
      expect(await found(`"'-\\`)).toBe(`Q"'-\\`);
      expect(await found('O"N')).toBe(`Q"'-\\`);
      expect(await found('abc', { productKey: 'abc' })).toBe('ZZZ');
      expect(await found('abc', { licenseKey: 'abcd' })).toBe('abcd');
      expect(await found('abc', { enabled: false })).toBe('');
      expect(await found('abc', { tenant: { accountId: 'other', productKey: null } })).toBe('');
      const search = { text: 'abc', keys: 'anywhere' } as const;
      const second = { limit: 2, offset: 0, cursor: ['ABCDE-2'] as [string] };
      const rest = await licenses.list({ search }, second);
      expect(rest.map(({ licenseKey }) => licenseKey)).toEqual(['ZZZ', 'abcd']);
      const skipped = await licenses.list({ search }, { limit: 1, offset: 2 });
      expect(skipped.map(({ licenseKey }) => licenseKey)).toEqual(['ZZZ']);
    });
  });

  test('whoever gets masked keys finds a license by its buyer, by the end that is shown, and by the whole key', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    await add(
      store,
      soldTo('ABCDE-FGHJK', 'x@example.com'),
      soldTo('SHORT-HJK', 'y@example.com'),
      soldTo('TINY-HJK', 'z@example.com'),
    );
    const { licenses, purchases } = store.reader;
    const found = async (text: string): Promise<string> => {
      const search = { text, keys: 'shown' } as const;
      const listed = await licenses.list({ search }, page);
      expect(await licenses.count({ search })).toBe(listed.length);
      expect(await purchases.count({ search })).toBe(0);
      return listed.map(({ licenseKey }) => licenseKey).join(' ');
    };
    await beforeAndAfterIndexing(store, async () => {
      expect(await found('hjk')).toBe('ABCDE-FGHJK SHORT-HJK');
      expect(await found('GHJ')).toBe('');
      expect(await found('GHJK')).toBe('');
      expect(await found('ABC')).toBe('');
      expect(await found('FGHJK')).toBe('');
      expect(await found('ABCDE-FGHJK')).toBe('ABCDE-FGHJK');
      expect(await found('Z@EXAMPLE')).toBe('TINY-HJK');
    });
  });

  test('a purchase is found by any part of the key or of the buyer, the latest first', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    await add(store, soldTo('ABCDE-1', 'x@example.com'), soldTo('QWERT-2', 'abcde@example.com', 'abc'));
    await store.write(async ({ purchases }) => {
      for (const [index, licenseKey] of ['ABCDE-1', 'QWERT-2', 'ABCDE-1'].entries()) {
        const refundedAt = index === 1 ? at : null;
        await purchases.add({ purchaseId: `p${index}`, licenseKey, createdAt: at + index, refundedAt });
      }
    });
    const { purchases } = store.reader;
    const found = async (text: string, filter: PurchaseFilter = {}): Promise<string> => {
      const search = { text, keys: 'anywhere' } as const;
      const listed = await purchases.list({ ...filter, search }, page);
      expect(await purchases.count({ ...filter, search })).toBe(listed.length);
      return listed.map(({ purchase }) => purchase.purchaseId).join(' ');
    };
    await beforeAndAfterIndexing(store, async () => {
      expect(await found('BCDE')).toBe('p2 p1 p0');
      expect(await found('DE-1')).toBe('p2 p0');
      expect(await found('bcde', { productKey: 'abc' })).toBe('p1');
      expect(await found('bcde', { refunded: false })).toBe('p2 p0');
      expect(await found('bcde', { until: at + 1 })).toBe('p1 p0');
      expect(await found('bcde', { licenseKey: 'QWERT-2' })).toBe('p1');
      expect(await found('bcde', { buyerEmail: 'x@example.com' })).toBe('p2 p0');
      const second = { limit: 5, offset: 0, cursor: [at + 2, 'p2'] as [number, string] };
      const rest = await purchases.list({ search: { text: 'bcde', keys: 'anywhere' } }, second);
      expect(rest.map(({ purchase }) => purchase.purchaseId)).toEqual(['p1', 'p0']);
    });
  });

  test('a search that finds more than it counts lists them in their order', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    const many = 2_100;
    const keys = Array.from(
      { length: many },
      (_, number) => `K-${String((number * 11) % many).padStart(4, '0')}`,
    );
    await add(store, ...keys.map((licenseKey) => soldTo(licenseKey, 'many@example.com')));
    await store.write(async ({ purchases }) => {
      for (const [index, licenseKey] of keys.entries())
        await purchases.add({ purchaseId: licenseKey, licenseKey, createdAt: at + index, refundedAt: null });
    });
    const { licenses, purchases } = store.reader;
    const search = { text: 'any@', keys: 'anywhere' } as const;
    await beforeAndAfterIndexing(store, async () => {
      expect(await licenses.count({ search })).toBe(maxFound + 1);
      expect(await purchases.count({ search })).toBe(maxFound + 1);
      const listed = await licenses.list({ search }, { limit: 3, offset: 0, cursor: ['K-0010'] });
      expect(listed.map(({ licenseKey }) => licenseKey)).toEqual(['K-0011', 'K-0012', 'K-0013']);
      const bought = await purchases.list({ search }, { limit: 2, offset: 1 });
      expect(bought.map(({ license }) => license.licenseKey)).toEqual(keys.slice(-3, -1).toReversed());
    });
  });

  test('a stored response is returned again until it is pruned', async () => {
    await using store = await openAuthorityStore();
    const { idempotency } = store.reader;
    const first = { fingerprint: 'f', value: { ok: true, value: null }, until: at, unchanged: true };
    const second = { fingerprint: 'f', value: { ok: true, value: [1] }, until: at, unchanged: false };
    const third = { fingerprint: 'f', value: { ok: true, value: 3 }, until: at };
    await store.write(async (transaction) => await transaction.idempotency.put('c', 'k', first));
    expect(await idempotency.unchangedCount('c')).toBe(1);
    expect(await idempotency.unchangedCount('d')).toBe(0);
    await store.write(async (transaction) => await transaction.idempotency.replace('c', 'k', third));
    expect(await idempotency.get('c', 'k')).toEqual({ fingerprint: 'f', value: { ok: true, value: 3 } });
    expect(await idempotency.unchangedCount('c')).toBe(1);
    await store.write(async (transaction) => await transaction.idempotency.put('c', 'k', second));
    expect(await idempotency.get('c', 'k')).toEqual({ fingerprint: 'f', value: { ok: true, value: [1] } });
    expect(await idempotency.get('d', 'k')).toBeNull();
    expect(await idempotency.unchangedCount('c')).toBe(0);
    const later = { ...second, until: at + 1 };
    await store.write(async (transaction) => await transaction.idempotency.put('c', 'later', later));
    const prune = async (limit: number) =>
      await store.write(async (transaction) => await transaction.idempotency.prune(at + 2, limit));
    expect([await prune(1), await idempotency.get('c', 'k')]).toEqual([1, null]);
    expect(await idempotency.get('c', 'later')).not.toBeNull();
    expect([await prune(10), await prune(10)]).toEqual([1, 0]);
  });

  test('the date of a stored response is moved at most as far as asked', async () => {
    await using store = await openAuthorityStore();
    const { idempotency } = store.reader;
    const dates = { past: 10, now: 20, future: 30, far: 99 };
    for (const [key, until] of Object.entries(dates)) {
      const answer = { fingerprint: 'f', value: 1, until, unchanged: false };
      await store.write(async (transaction) => await transaction.idempotency.put('c', key, answer));
    }
    const keepUntilAtMost = async (limit: number) =>
      await store.write(async (transaction) => await transaction.idempotency.keepUntilAtMost(20, limit));
    expect([await keepUntilAtMost(1), await keepUntilAtMost(10), await keepUntilAtMost(10)]).toEqual([
      1, 1, 0,
    ]);
    const renew = async (until: number, byMs: number) =>
      await store.write(async (transaction) => await transaction.idempotency.renew('c', 'past', until, byMs));
    await renew(19, 10);
    await store.write(async (transaction) => await transaction.idempotency.prune(10, 10));
    expect(await idempotency.get('c', 'past')).not.toBeNull();
    await renew(20, 10);
    await store.write(async (transaction) => await transaction.idempotency.prune(20, 10));
    for (const key of Object.keys(dates)) expect(await idempotency.get('c', key)).not.toBeNull();
    await store.write(async (transaction) => await transaction.idempotency.prune(21, 10));
    for (const key of Object.keys(dates)) expect(await idempotency.get('c', key)).toBeNull();
  });

  test('a license has a revision for each change and each refund, and the revision of its last disable', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    const { licenses } = store.reader;
    await store.write(async (transaction) => await transaction.licenses.add(buildLicense()));
    const { licenseKey } = buildLicense();
    const tenant = { accountId: 'default', productKey: null };
    const change = async (trigger: 'usage' | 'disable' | 'enable') =>
      await store.write(
        async (transaction) =>
          (await transaction.licenses.change({ tenant, licenseKey, trigger, historyEntry: null }))?.after
            .revision,
      );
    const set = async (uses: number, enabled: boolean, isRefund: boolean) => {
      await store.write(
        async (transaction) => await transaction.licenses.setState({ licenseKey, uses, enabled }, isRefund),
      );
      return (await licenses.get(licenseKey))?.revision;
    };
    const isRevokedSince = async (revision: number) =>
      await store.write(
        async (transaction) => await transaction.licenses.isRevokedSince(licenseKey, revision),
      );
    const first = (await licenses.get(licenseKey))?.revision ?? 0;
    expect([await change('usage'), await change('disable')]).toEqual([first + 1, first + 2]);
    expect(await change('disable')).toBe(first + 2);
    expect([await isRevokedSince(first + 1), await isRevokedSince(first + 2)]).toEqual([true, false]);
    expect(await set(1, false, true)).toBe(first + 3);
    expect([await isRevokedSince(first + 2), await isRevokedSince(first + 3)]).toEqual([true, false]);
    expect(await change('enable')).toBe(first + 4);
    expect(await isRevokedSince(0)).toBe(false);
    expect(await set(7, true, false)).toBe(first + 5);
    expect(await set(7, true, false)).toBe(first + 5);
  });

  test('a setting has the value that was set last', async () => {
    await using store = await openAuthorityStore();
    expect(await store.reader.settings.get('instance')).toBeNull();
    await store.write(async ({ settings }) => {
      await settings.set('instance', 'a');
      await settings.set('instance', 'b');
    });
    expect(await store.reader.settings.get('instance')).toBe('b');
  });

  test('audit entries are listed with the latest first, and by every filter', async () => {
    await using store = await openAuthorityStore();
    const act = { at, actor: 'token:t', act: 'drop', subject: 'operation-1', detail: '' };
    await store.write(async ({ audit }) => {
      await audit.add(act);
      await audit.add({ ...act, at: at + 1, actor: 'token:u' });
      await audit.add({ ...act, at: at + 1, act: 'retry', subject: 'operation-2' });
    });
    const { audit } = store.reader;
    const [third, second, first] = await audit.list({}, page);
    expect(first).toEqual({ ...act, id: 1 });
    expect(await audit.get(1)).toEqual(first);
    const cases = [
      [{ since: at + 1 }, [third, second]],
      [{ until: at + 1 }, [first]],
      [{ actor: 'token:u' }, [second]],
      [{ act: 'drop' }, [second, first]],
      [{ subject: 'operation-2', act: 'drop' }, []],
      [{ subject: 'operation-2' }, [third]],
    ] as const;
    for (const [filter, expected] of cases) {
      expect(await audit.list(filter, page)).toEqual(expected);
      expect(await audit.count(filter)).toBe(expected.length);
    }
  });

  test('the history of a license key lists the last thousand changes, and stores few more', async () => {
    await using store = await openAuthorityStore();
    await catalogue(store);
    await add(store, buildLicense({ licenseKey: 'KEY-1' }), buildLicense({ licenseKey: 'KEY-2' }));
    const state = { uses: 0, enabled: true };
    const change = { change: 'usage', credential: 'product:press', before: state, after: state } as const;
    await store.write(async ({ history }) => {
      await history.add({ ...change, licenseKey: 'KEY-2', at });
      for (let count = 1; count <= 1_010; count += 1) {
        await history.add({
          ...change,
          licenseKey: 'KEY-1',
          at: at + count,
          after: { uses: count, enabled: false },
        });
      }
    });
    const { history } = store.reader;
    expect([await history.count('KEY-1'), await history.count('KEY-2')]).toEqual([1_000, 1]);
    expect(await history.list('KEY-1', { limit: 1, offset: 0 })).toEqual([
      {
        ...change,
        licenseKey: 'KEY-1',
        number: 1_010,
        at: at + 1_010,
        after: { uses: 1_010, enabled: false },
      },
    ]);
    const oldest = await history.list('KEY-1', { limit: 10, offset: 999 });
    expect(oldest.map((each) => each.at)).toEqual([at + 11]);
    const prune = async (limit: number) =>
      await store.write(async (transaction) => await transaction.history.prune(at + 3_000, limit));
    expect(await prune(50)).toBe(50);
    expect(await prune(5_000)).toBeLessThan(1_100);
    expect([await history.count('KEY-1'), await history.count('KEY-2')]).toEqual([0, 0]);
  });
});
