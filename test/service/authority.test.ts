import { describe, expect, it } from 'vitest';
import type { CouponTerms } from '../../src/domain/checkout/coupon.ts';
import type { LicenseTrigger } from '../../src/domain/license.ts';
import { authorityCouponing, authorityLicensing } from '../../src/service/authority/answers.ts';
import type { Tenant } from '../../src/domain/access/principal.ts';
import type { PurchaseWithLicense } from '../../src/domain/purchase.ts';
import { refusalOf, second, Harness, valueOf } from '../support/harness/service-harness.ts';
import { buildTerms } from '../support/builders/coupon-builders.ts';

const accountId = 'default';
const anyProduct: Tenant = { accountId, productKey: null };
const terms = buildTerms();

/** A purchase that happens now; the key is made. */
const newSale = { buyerEmail: 'a@example.com', licenseKey: null, soldAt: null, uses: 0, enabled: true };

/** An authority with the product `press` of the default account. */
class Shop extends Harness {
  async open(): Promise<this> {
    const start = { adminTokenDigest: 'd', place: 'here', apiKeyDigest: 'digest' };
    valueOf(await this.writer.write('startAuthority', start));
    await this.addProduct('press');
    return this;
  }

  async addProduct(productKey: string, { recurring = false, of = accountId } = {}): Promise<void> {
    const command = { name: productKey, recurring, accountId: of, productKey, secret: null };
    valueOf(await this.writer.write('addProduct', command));
  }

  async sell(productKey: string = 'press', licenseKey: string | null = null): Promise<PurchaseWithLicense> {
    const command = { ...newSale, productKey, licenseKey };
    return valueOf(await this.writer.write('addPurchase', command));
  }

  async change(licenseKey: string, trigger: Exclude<LicenseTrigger, 'refund'>, tenant = anyProduct) {
    return this.writer.write('changeLicense', { tenant, licenseKey, trigger });
  }

  async createCoupon(changes: Partial<CouponTerms>) {
    return this.writer.write('createCoupon', { accountId, terms: { ...terms, ...changes } });
  }
}

describe('a license on the authority', () => {
  it('is changed as it is asked for, and only so', async () => {
    await using shop = await new Shop().open();
    const { license } = await shop.sell();
    expect(license).toMatchObject({ uses: 0, enabled: true, productKey: 'press', createdAt: shop.now });
    const key = license.licenseKey;
    expect(key).toMatch(/^[A-HJ-NP-Z2-9]{5}(-[A-HJ-NP-Z2-9]{5}){3}$/);
    for (const [trigger, expected] of [
      ['usage', { uses: 1, enabled: true }],
      ['decrease', { uses: 0, enabled: true }],
      ['decrease', { uses: 0, enabled: true }],
      ['disable', { uses: 0, enabled: false }],
      ['disable', { uses: 0, enabled: false }],
      ['usage', { uses: 1, enabled: false }],
      ['enable', { uses: 1, enabled: true }],
      ['enable', { uses: 1, enabled: true }],
    ] as const) {
      expect(valueOf(await shop.change(key, trigger))).toEqual({ ...license, ...expected });
    }
    shop.reopen();
    expect(shop.store.licenses.get(key)).toEqual({ ...license, uses: 1, enabled: true });
  });

  it('is changed under the secret of its own product', async () => {
    await using shop = await new Shop().open();
    const { licenseKey } = (await shop.sell()).license;
    const tenant = { accountId, productKey: 'press' };
    expect(valueOf(await shop.change(licenseKey, 'usage', tenant)).uses).toBe(1);
  });

  it('is not found under another product or account, nor when there is none', async () => {
    await using shop = await new Shop().open();
    await shop.addProduct('brush');
    const { license } = await shop.sell();
    const reaches = [
      { accountId, productKey: 'brush' },
      { accountId: 'other', productKey: null },
    ];
    for (const tenant of reaches) {
      const refused = await shop.writer.write('changeLicense', {
        tenant,
        licenseKey: license.licenseKey,
        trigger: 'usage',
      });
      expect(refusalOf(refused)).toBe('license_not_found');
    }
    expect(refusalOf(await shop.change('NONE', 'usage'))).toBe('license_not_found');
    expect(shop.store.licenses.get(license.licenseKey)).toEqual(license);
  });
});

describe('a purchase', () => {
  it('takes the license key it is given, once in the whole authority', async () => {
    await using shop = await new Shop().open();
    await shop.addProduct('brush');
    await shop.sell('press', 'MINE');
    const command = { ...newSale, productKey: 'brush', licenseKey: 'MINE' };
    expect(refusalOf(await shop.writer.write('addPurchase', command))).toBe('license_key_taken');
  });

  it('of an existing store keeps when it was made, its uses and its state', async () => {
    await using shop = await new Shop().open();
    const soldAt = shop.now - 400 * 86_400 * second;
    const command = { ...newSale, productKey: 'press', soldAt, uses: 3, enabled: false };
    const { purchase, license } = valueOf(await shop.writer.write('addPurchase', command));
    expect(license).toMatchObject({ createdAt: soldAt, uses: 3, enabled: false });
    expect(purchase).toMatchObject({ createdAt: soldAt, refundedAt: null });
  });

  it('is of a product that there is', async () => {
    await using shop = await new Shop().open();
    const command = { ...newSale, productKey: 'none' };
    expect(await shop.writer.write('addPurchase', command)).toMatchObject({
      problem: { code: 'parameters_invalid', errors: [{ code: 'product_not_found' }] },
    });
  });

  it('that is refunded disables its license, and a second refund changes nothing', async () => {
    await using shop = await new Shop().open();
    const { purchase, license } = await shop.sell();
    const { purchaseId } = purchase;
    const refunded = valueOf(await shop.writer.write('refundPurchase', { purchaseId }));
    expect(refunded).toEqual({
      purchase: { ...purchase, refundedAt: shop.now },
      license: { ...license, enabled: false },
    });
    shop.pass(second);
    expect(valueOf(await shop.writer.write('refundPurchase', { purchaseId }))).toEqual(refunded);
  });

  it('that was refunded stays so when its license was enabled again, and refunding it anew is no act', async () => {
    await using shop = await new Shop().open();
    const { purchase, license } = await shop.sell();
    const { purchaseId } = purchase;
    await shop.writer.write('refundPurchase', { purchaseId });
    await shop.change(license.licenseKey, 'enable');
    const again = valueOf(await shop.writer.write('refundPurchase', { purchaseId }));
    expect(again.license.enabled).toBe(true);
    expect(shop.store.audit.count({ act: 'purchase.refund', subject: purchaseId })).toBe(1);
  });

  it('that there is not cannot be refunded', async () => {
    await using shop = await new Shop().open();
    const refused = await shop.writer.write('refundPurchase', { purchaseId: 'none' });
    expect(refusalOf(refused)).toBe('purchase_not_found');
  });
});

describe('a coupon on the authority', () => {
  it('is created with all its terms, and ids ascend', async () => {
    await using shop = await new Shop().open();
    const first = valueOf(await shop.createCoupon({}));
    const second_ = valueOf(await shop.createCoupon({ code: 'AUTUMN', notes: 'n', usageLimit: 3 }));
    expect(first).toEqual({ ...terms, id: first.id });
    expect(second_.id).toBeGreaterThan(first.id);
    expect(shop.store.coupons.list(accountId, { limit: 10, offset: 0 })).toEqual([first, second_]);
  });

  it('is refused for a code that is taken in any letter case, and leaves nothing behind', async () => {
    await using shop = await new Shop().open();
    await shop.createCoupon({});
    expect(refusalOf(await shop.createCoupon({ code: 'spring' }))).toBe('coupon_code_taken');
    expect(shop.store.coupons.count(accountId)).toBe(1);
  });

  it('is refused for a product or collection that the account does not have', async () => {
    await using shop = await new Shop().open();
    const other = valueOf(await shop.writer.write('addAccount', { name: 'Other', apiKey: null })).account
      .accountId;
    await shop.addProduct('theirs', { of: other });
    const scopes = [
      [{ type: 'single', productKey: 'none' }, 'product_not_found'],
      [{ type: 'single', productKey: 'theirs' }, 'product_not_found'],
      [{ type: 'collection', collectionId: 'none' }, 'collection_not_found'],
    ] as const;
    for (const [scope, code] of scopes) {
      expect(await shop.createCoupon({ scope })).toMatchObject({
        problem: { code: 'parameters_invalid', errors: [{ code }] },
      });
    }
  });

  it('is refused for a product with a recurring price', async () => {
    await using shop = await new Shop().open();
    await shop.addProduct('monthly', { recurring: true });
    const refused = await shop.createCoupon({ scope: { type: 'single', productKey: 'monthly' } });
    expect(refused).toMatchObject({
      problem: {
        code: 'product_is_recurring',
        errors: [{ parameter: 'product_key', code: 'product_is_recurring' }],
      },
    });
  });

  it('may be for a product or a collection of the account', async () => {
    await using shop = await new Shop().open();
    const collection = valueOf(
      await shop.writer.write('addCollection', {
        accountId,
        name: 'All',
        productKeys: ['press', 'press'],
        collectionId: null,
      }),
    );
    expect(collection.productKeys).toEqual(['press']);
    const { collectionId } = collection;
    const scopes = [
      { type: 'single', productKey: 'press' },
      { type: 'collection', collectionId },
    ] as const;
    for (const [index, scope] of scopes.entries()) {
      expect(valueOf(await shop.createCoupon({ scope, code: `C${index}` })).scope).toEqual(scope);
    }
  });
});

describe('the catalogue', () => {
  it('shows a secret once, and takes only the newest', async () => {
    await using shop = await new Shop().open();
    const added = valueOf(await shop.writer.write('addAccount', { name: 'Other', apiKey: null }));
    const { accountId: id } = added.account;
    const rolled = valueOf(await shop.writer.write('rollApiKey', { accountId: id, oldUntil: null }));
    expect(rolled.apiKey).not.toBe(added.apiKey);
    expect(refusalOf(await shop.writer.write('rollApiKey', { accountId: 'none', oldUntil: null }))).toBe(
      'account_not_found',
    );
    const secret = valueOf(
      await shop.writer.write('rollProductSecret', { productKey: 'press', oldUntil: null }),
    ).secret;
    expect(secret).toMatch(/^lk_prod_[0-9a-f]{64}$/);
    const none = await shop.writer.write('rollProductSecret', { productKey: 'none', oldUntil: null });
    expect(refusalOf(none)).toBe('product_not_found');
  });

  it('has each product key, secret and collection id once', async () => {
    await using shop = await new Shop().open();
    const product = { name: 'x', recurring: false, accountId, productKey: null, secret: 'theirs' };
    valueOf(await shop.writer.write('addProduct', product));
    const again = await shop.writer.write('addProduct', product);
    expect(again).toMatchObject({ problem: { errors: [{ parameter: 'secret', code: 'taken' }] } });
    const taken = await shop.writer.write('addProduct', { ...product, productKey: 'press', secret: null });
    expect(refusalOf(taken)).toBe('product_key_taken');
    const collection = { accountId, name: 'c', productKeys: [], collectionId: 'c' };
    valueOf(await shop.writer.write('addCollection', collection));
    const twice = await shop.writer.write('addCollection', collection);
    expect(refusalOf(twice)).toBe('collection_id_taken');
  });

  it('has products and collections in accounts that there are, and collections of their own products', async () => {
    await using shop = await new Shop().open();
    const { account } = valueOf(await shop.writer.write('addAccount', { name: 'Other', apiKey: null }));
    await shop.addProduct('theirs', { of: account.accountId });
    const product = { name: 'x', recurring: false, accountId: 'none', productKey: null, secret: null };
    expect(await shop.writer.write('addProduct', product)).toMatchObject({
      problem: { errors: [{ parameter: 'account_id', code: 'account_not_found' }] },
    });
    const collection = { name: 'c', collectionId: null };
    for (const [changes, fault] of [
      [
        { accountId: 'none', productKeys: [] },
        { parameter: 'account_id', code: 'account_not_found' },
      ],
      [
        { accountId, productKeys: ['press', 'none'] },
        { parameter: 'product_keys', code: 'product_not_found' },
      ],
      [
        { accountId, productKeys: ['theirs'] },
        { parameter: 'product_keys', code: 'product_not_found' },
      ],
    ] as const) {
      expect(await shop.writer.write('addCollection', { ...collection, ...changes })).toMatchObject({
        problem: { code: 'parameters_invalid', errors: [fault] },
      });
    }
  });
});

describe('an answer of the authority', () => {
  const never = new AbortController().signal;

  it('about a license is authoritative, and 404 outside of what the credential reaches', async () => {
    await using shop = await new Shop().open();
    const { license } = await shop.sell();
    const licensing = authorityLicensing(shop.store, shop.writer);
    const { licenseKey } = license;
    const provenance = { freshness: 'authoritative' };
    const answered = { license, productKey: license.productKey, provenance };
    expect(valueOf(await licensing.verify(anyProduct, licenseKey, never))).toMatchObject(answered);
    const own = { accountId, productKey: license.productKey };
    expect(valueOf(await licensing.verify(own, licenseKey, never))).toMatchObject(answered);
    const other = { accountId, productKey: 'brush' };
    expect(refusalOf(await licensing.verify(other, licenseKey, never))).toBe('license_not_found');
    const request = { licenseKey, trigger: 'usage', actor: null, idempotency: null, waitMs: 0 } as const;
    expect(valueOf(await licensing.change({ ...request, tenant: anyProduct }, never))).toEqual({
      license: { ...license, uses: 1 },
      productKey: license.productKey,
      provenance,
    });
    expect(refusalOf(await licensing.change({ ...request, tenant: other }, never))).toBe('license_not_found');
  });

  it('about a change that is repeated under its idempotency key is the same, and counts once', async () => {
    await using shop = await new Shop().open();
    const { licenseKey } = (await shop.sell()).license;
    const licensing = authorityLicensing(shop.store, shop.writer);
    const idempotency = { credential: 'c', key: 'k', fingerprint: 'f' };
    const request = {
      tenant: anyProduct,
      licenseKey,
      trigger: 'usage',
      actor: null,
      idempotency,
      waitMs: 0,
    } as const;
    const first = valueOf(await licensing.change(request, never));
    expect(valueOf(await licensing.change(request, never))).toEqual(first);
    expect(shop.store.licenses.get(licenseKey)?.uses).toBe(1);
  });

  it('about coupons has those of the account alone', async () => {
    await using shop = await new Shop().open();
    const couponing = authorityCouponing(shop.store, shop.writer);
    const nobody = { actor: null, requestId: null, idempotency: null };
    const { coupon, provenance } = valueOf(await couponing.create(accountId, terms, nobody, never));
    expect(provenance).toEqual({ freshness: 'authoritative' });
    const page = { limit: 10, offset: 0 };
    expect(valueOf(await couponing.list(accountId, page, never))).toEqual({
      coupons: [coupon],
      total: 1,
      provenance,
    });
    expect(valueOf(await couponing.get(accountId, coupon.id, never))).toEqual({ coupon, provenance });
    expect(refusalOf(await couponing.get('other', coupon.id, never))).toBe('coupon_not_found');
    expect(valueOf(await couponing.list('other', page, never)).total).toBe(0);
  });
});
