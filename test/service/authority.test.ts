import { describe, expect, it } from 'vitest';
import type { CouponTerms } from '../../src/domain/checkout/coupon.ts';
import type { LicenseTrigger } from '../../src/domain/license.ts';
import { authorityCouponService, authorityLicenseService } from '../../src/service/authority/services.ts';
import type { CacheableResponse } from '../../src/service/services.ts';
import type { Tenant } from '../../src/domain/access/principal.ts';
import type { PurchaseWithLicense } from '../../src/domain/catalogue.ts';
import { refusalOf, second, Harness, valueOf } from '../support/harness/service-harness.ts';
import { VirtualTime } from '../support/harness/virtual-clock.ts';
import { buildTerms } from '../support/builders/coupon-builders.ts';

const accountId = 'default';
const anyProduct: Tenant = { accountId, productKey: null };
const terms = buildTerms();

/** A purchase with a generated key. */
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

describe('changeLicense', () => {
  it('a license changes as requested', async () => {
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
      expect(valueOf(await shop.change(key, trigger))).toMatchObject({ ...license, ...expected });
    }
    shop.reopen();
    expect(shop.store.licenses.get(key)).toMatchObject({ ...license, uses: 1, enabled: true });
  });

  it('a license can be changed with the secret of its product', async () => {
    await using shop = await new Shop().open();
    const { licenseKey } = (await shop.sell()).license;
    const tenant = { accountId, productKey: 'press' };
    expect(valueOf(await shop.change(licenseKey, 'usage', tenant)).uses).toBe(1);
  });

  it('a license is not found under another product or account, or if it does not exist', async () => {
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
    expect(shop.store.licenses.get(license.licenseKey)).toMatchObject(license);
  });
});

describe('addPurchase and refundPurchase', () => {
  it('a purchase accepts a license key, which is unique in the whole authority', async () => {
    await using shop = await new Shop().open();
    await shop.addProduct('brush');
    await shop.sell('press', 'MINE');
    const command = { ...newSale, productKey: 'brush', licenseKey: 'MINE' };
    expect(refusalOf(await shop.writer.write('addPurchase', command))).toBe('license_key_taken');
  });

  it('a purchase from an existing store keeps its date, uses and state', async () => {
    await using shop = await new Shop().open();
    const soldAt = shop.now - 400 * 86_400 * second;
    const command = { ...newSale, productKey: 'press', soldAt, uses: 3, enabled: false };
    const { purchase, license } = valueOf(await shop.writer.write('addPurchase', command));
    expect(license).toMatchObject({ createdAt: soldAt, uses: 3, enabled: false });
    expect(purchase).toMatchObject({ createdAt: soldAt, refundedAt: null });
  });

  it('a purchase of an unknown product is refused', async () => {
    await using shop = await new Shop().open();
    const command = { ...newSale, productKey: 'none' };
    expect(await shop.writer.write('addPurchase', command)).toMatchObject({
      problem: { code: 'parameters_invalid', errors: [{ code: 'product_not_found' }] },
    });
  });

  it('a refund of a purchase disables its license, and a second refund changes nothing', async () => {
    await using shop = await new Shop().open();
    const { purchase, license } = await shop.sell();
    const { purchaseId } = purchase;
    const refunded = valueOf(await shop.writer.write('refundPurchase', { purchaseId }));
    expect(refunded).toMatchObject({
      purchase: { ...purchase, refundedAt: shop.now },
      license: { ...license, enabled: false },
    });
    shop.pass(second);
    expect(valueOf(await shop.writer.write('refundPurchase', { purchaseId }))).toEqual(refunded);
  });

  it('a refunded purchase stays refunded if its license is enabled again, and a second refund is not audited', async () => {
    await using shop = await new Shop().open();
    const { purchase, license } = await shop.sell();
    const { purchaseId } = purchase;
    await shop.writer.write('refundPurchase', { purchaseId });
    await shop.change(license.licenseKey, 'enable');
    const again = valueOf(await shop.writer.write('refundPurchase', { purchaseId }));
    expect(again.license.enabled).toBe(true);
    expect(shop.store.audit.count({ act: 'purchase.refund', subject: purchaseId })).toBe(1);
  });

  it('a refund of an unknown purchase is refused', async () => {
    await using shop = await new Shop().open();
    const refused = await shop.writer.write('refundPurchase', { purchaseId: 'none' });
    expect(refusalOf(refused)).toBe('purchase_not_found');
  });
});

describe('createCoupon', () => {
  it('a coupon is created with all its terms, and coupon ids ascend', async () => {
    await using shop = await new Shop().open();
    const first = valueOf(await shop.createCoupon({}));
    const second_ = valueOf(await shop.createCoupon({ code: 'AUTUMN', notes: 'n', usageLimit: 3 }));
    expect(first).toEqual({ ...terms, id: first.id });
    expect(second_.id).toBeGreaterThan(first.id);
    expect(shop.store.coupons.list(accountId, { limit: 10, offset: 0 })).toEqual([first, second_]);
  });

  it('a coupon with a taken code is refused, ignoring case, and nothing is stored', async () => {
    await using shop = await new Shop().open();
    await shop.createCoupon({});
    expect(refusalOf(await shop.createCoupon({ code: 'spring' }))).toBe('coupon_code_taken');
    expect(shop.store.coupons.count(accountId)).toBe(1);
  });

  it('a coupon for a product or collection that the account does not have is refused', async () => {
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

  it('a coupon for a product with a recurring price is refused', async () => {
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

  it('a coupon can apply to a product or a collection of the account', async () => {
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

describe('accounts, products and collections', () => {
  it('rotating an API key or a product secret returns a new one, and an unknown account or product is refused', async () => {
    await using shop = await new Shop().open();
    const added = valueOf(await shop.writer.write('addAccount', { name: 'Other', apiKey: null }));
    const { accountId: id } = added.account;
    const rotated = valueOf(await shop.writer.write('rotateApiKey', { accountId: id, oldUntil: null }));
    expect(rotated.apiKey).not.toBe(added.apiKey);
    expect(refusalOf(await shop.writer.write('rotateApiKey', { accountId: 'none', oldUntil: null }))).toBe(
      'account_not_found',
    );
    const secret = valueOf(
      await shop.writer.write('rotateProductSecret', { productKey: 'press', oldUntil: null }),
    ).secret;
    expect(secret).toMatch(/^lk_prod_[0-9a-f]{64}$/);
    const none = await shop.writer.write('rotateProductSecret', { productKey: 'none', oldUntil: null });
    expect(refusalOf(none)).toBe('product_not_found');
  });

  it('product keys, secrets and collection ids are unique', async () => {
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

  it('products and collections need an existing account, and collections contain only its products', async () => {
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

describe('authorityLicensing and authorityCouponing', () => {
  const never = new AbortController().signal;

  it('a license is answered as authoritative, and is not found outside the tenant', async () => {
    await using shop = await new Shop().open();
    const { license } = await shop.sell();
    const licenseService = authorityLicenseService(shop.store, shop.writer, { now: () => shop.now });
    const { licenseKey } = license;
    const provenance = { freshness: 'authoritative' };
    const answered = { license, productKey: license.productKey, provenance };
    expect(valueOf(await licenseService.verify(anyProduct, licenseKey, never))).toMatchObject(answered);
    const own = { accountId, productKey: license.productKey };
    expect(valueOf(await licenseService.verify(own, licenseKey, never))).toMatchObject(answered);
    expect(licenseService.verifyNow?.(own, licenseKey)).toMatchObject(answered);
    expect(licenseService.verifyNow?.({ accountId, productKey: 'brush' }, licenseKey)).toBeNull();
    const other = { accountId, productKey: 'brush' };
    expect(refusalOf(await licenseService.verify(other, licenseKey, never))).toBe('license_not_found');
    const request = { licenseKey, trigger: 'usage', actor: null, idempotency: null, waitMs: 0 } as const;
    expect(valueOf(await licenseService.change({ ...request, tenant: anyProduct }, never))).toMatchObject({
      license: { ...license, uses: 1 },
      productKey: license.productKey,
      provenance,
    });
    expect(refusalOf(await licenseService.change({ ...request, tenant: other }, never))).toBe(
      'license_not_found',
    );
  });

  it('a change that is repeated under its idempotency key gets the same response and counts once', async () => {
    await using shop = await new Shop().open();
    const { licenseKey } = (await shop.sell()).license;
    const licenseService = authorityLicenseService(shop.store, shop.writer, { now: () => shop.now });
    const idempotency = { credential: 'c', key: 'k', fingerprint: 'f' };
    const request = {
      tenant: anyProduct,
      licenseKey,
      trigger: 'usage',
      actor: null,
      idempotency,
      waitMs: 0,
    } as const;
    const first = valueOf(await licenseService.change(request, never));
    expect(valueOf(await licenseService.change(request, never))).toEqual(first);
    expect(shop.store.licenses.get(licenseKey)?.uses).toBe(1);
  });

  it('a change of a license that has ended is answered as a verify is, also to an agent that repeats it', async () => {
    await using shop = await new Shop().open();
    const expiresAt = shop.now + second;
    const { license } = valueOf(
      await shop.writer.write('addPurchase', { ...newSale, productKey: 'press', terms: { expiresAt } }),
    );
    const { licenseKey } = license;
    const licenseService = authorityLicenseService(shop.store, shop.writer, { now: () => shop.now });
    const keyed = { id: 'id', createdAt: shop.now, epoch: null, isRepeat: false, seenRevision: null };
    const idempotency = { credential: 'c', key: 'k', fingerprint: 'f', keyed };
    const use = { tenant: anyProduct, licenseKey, trigger: 'usage', actor: null, waitMs: 0 } as const;
    const ask = async (key: typeof idempotency | null) =>
      valueOf(await licenseService.change({ ...use, idempotency: key }, never)).license;
    expect(await ask(idempotency)).toMatchObject({ uses: 1, enabled: true, status: 'active' });
    shop.pass(second + 1);
    const ended = { enabled: false, status: 'expired' };
    expect(await ask(idempotency)).toMatchObject({ uses: 1, ...ended });
    expect(await ask(null)).toMatchObject({ uses: 2, ...ended });
    expect(shop.store.licenses.get(licenseKey)).toMatchObject({ enabled: true });
  });

  it('a license ends by the time of the authority, which setting its clock back does not turn back, nor a restart', async () => {
    await using shop = await new Shop().open();
    const hour = 3_600_000;
    const day = 24 * hour;
    const sale = { ...newSale, productKey: 'press', terms: { expiresAt: shop.now + hour } };
    const { licenseKey } = valueOf(await shop.writer.write('addPurchase', sale)).license;
    /** What a verify says in turn; before each, the wall clock is changed and time passes, or the process is restarted. */
    const said = async (...steps: ({ jump?: number; pass?: number } | 'restart')[]) => {
      const time = new VirtualTime();
      let clock = time.clock({ wall: shop.now });
      const found = [];
      for (const step of steps) {
        if (step === 'restart') clock = clock.restarted(clock.mark());
        else {
          clock.jumpWall(step.jump ?? 0);
          await time.advance(step.pass ?? 0);
        }
        const service = authorityLicenseService(shop.store, shop.writer, clock);
        const answer = service.verifyNow?.({ accountId, productKey: 'press' }, licenseKey);
        found.push((answer as CacheableResponse).license.status);
      }
      return found;
    };
    expect(await said({ pass: hour }, { pass: 1 })).toEqual(['active', 'expired']);
    const back = [{ pass: hour + 1 }, { jump: -2 * day }, 'restart'] as const;
    expect(await said(...back)).toEqual(['expired', 'expired', 'expired']);
    const early = [{ jump: -2 * day, pass: hour }, { pass: 1 }] as const;
    expect(await said(...early)).toEqual(['active', 'expired']);
    const ahead = [{ jump: 2 * day }, { jump: -2 * day }, 'restart'] as const;
    expect(await said(...ahead)).toEqual(['expired', 'expired', 'expired']);
    // A jump that is too long to be believed is not remembered.
    const suspect = [{ jump: 40 * day }, { jump: -40 * day }, 'restart'] as const;
    expect(await said(...suspect)).toEqual(['expired', 'expired', 'active']);
  });

  it('the list of coupons contains only coupons of the account', async () => {
    await using shop = await new Shop().open();
    const couponService = authorityCouponService(shop.store, shop.writer);
    const nobody = { actor: null, requestId: null, idempotency: null };
    const { coupon, provenance } = valueOf(await couponService.create(accountId, terms, nobody, never));
    expect(provenance).toEqual({ freshness: 'authoritative' });
    const page = { limit: 10, offset: 0 };
    expect(valueOf(await couponService.list(accountId, page, never))).toEqual({
      coupons: [coupon],
      total: 1,
      leftOut: 0,
      provenance,
    });
    expect(valueOf(await couponService.get(accountId, coupon.id, never))).toEqual({ coupon, provenance });
    expect(refusalOf(await couponService.get('other', coupon.id, never))).toBe('coupon_not_found');
    expect(valueOf(await couponService.list('other', page, never)).total).toBe(0);
  });
});
