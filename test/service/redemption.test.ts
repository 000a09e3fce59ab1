import { describe, expect, it } from 'vitest';
import type { CouponTerms } from '../../src/domain/checkout/coupon.ts';
import type { CartLine } from '../../src/domain/checkout/quote.ts';
import { buildCart, buildCoupon } from '../support/builders/coupon-builders.ts';
import { day, refusalOf, second, Harness, valueOf } from '../support/harness/service-harness.ts';

const accountId = 'default';

/** An authority with two products, one of them in a collection. */
class Shop extends Harness {
  async open(): Promise<this> {
    const start = { adminTokenDigest: 'd', place: 'here', apiKeyDigest: 'digest' };
    valueOf(await this.writer.write('startAuthority', start));
    await this.addProduct('press');
    await this.addProduct('brush');
    await this.addProduct('monthly', { recurring: true });
    const collection = { accountId, name: 'Set', productKeys: ['brush', 'monthly'], collectionId: 'set' };
    valueOf(await this.writer.write('addCollection', collection));
    return this;
  }

  async addProduct(productKey: string, { recurring = false, of = accountId } = {}): Promise<void> {
    const command = { name: productKey, recurring, accountId: of, productKey, secret: null };
    valueOf(await this.writer.write('addProduct', command));
  }

  async createCoupon(changes: Partial<CouponTerms> = {}, of: string = accountId): Promise<number> {
    const { id: _, ...terms } = buildCoupon(changes);
    return valueOf(await this.writer.write('createCoupon', { accountId: of, terms })).id;
  }

  redeem(order: string, ...lines: readonly Partial<CartLine>[]) {
    return this.writer.write('redeemCoupon', { accountId, order, cart: buildCart(...lines) });
  }

  /** As an agent that has answered its caller at an instant. */
  redeemAt(order: string, takenAt: number) {
    return this.writer.write('redeemCoupon', { accountId, order, cart: buildCart({}), takenAt });
  }

  void(order: string) {
    return this.writer.write('voidRedemption', { accountId, order });
  }
}

describe('redeeming a coupon', () => {
  it('a coupon is redeemed for an order with its discount', async () => {
    await using shop = await new Shop().open();
    const couponId = await shop.createCoupon();
    const redeemed = valueOf(await shop.redeem('A-1', { amount: 1000 }));
    expect(redeemed).toMatchObject({
      isNew: true,
      redemption: { order: 'A-1', couponId, redeemedAt: shop.now, quote: { code: 'SPRING', discount: 200 } },
    });
    shop.reopen();
    expect(shop.store.redemptions.get(accountId, 'A-1')).toEqual(redeemed.redemption);
    expect(shop.store.redemptions.countOf(accountId, couponId)).toBe(1);
  });

  it('a coupon is redeemed once per order: the same cart gets the same response, later and under other terms', async () => {
    await using shop = await new Shop().open();
    await shop.createCoupon({ usageLimit: 1, endAt: shop.now + second });
    const { redemption } = valueOf(await shop.redeem('A-1', {}));
    shop.pass(2 * second);
    expect(valueOf(await shop.redeem('A-1', {}))).toEqual({ redemption, isNew: false });
    expect(shop.store.redemptions.countOf(accountId, redemption.couponId)).toBe(1);
  });

  it('a coupon is redeemed for the same cart in another order of its lines, each with its discount', async () => {
    await using shop = await new Shop().open();
    await shop.createCoupon({ discount: { type: 'amount', amountOff: 1 } });
    const lines = [{ productKey: 'brush' }, { productKey: 'press' }];
    const { redemption } = valueOf(await shop.redeem('A-1', ...lines));
    expect(redemption.quote.lines.map((line) => line.discount)).toEqual([1, 0]);
    const again = valueOf(await shop.redeem('A-1', ...lines.toReversed()));
    expect(again.isNew).toBe(false);
    expect(again.redemption.quote.lines).toEqual(redemption.quote.lines.toReversed());
    expect(shop.store.redemptions.get(accountId, 'A-1')).toEqual(redemption);
  });

  it.each([
    ['another price', [{ amount: 1001 }]],
    ['another quantity', [{ quantity: 2 }]],
    ['another product', [{ productKey: 'brush' }]],
    ['another line', [{}, {}]],
    ['another collection', [{ collectionIds: ['set'] }]],
  ])('an order redeems a coupon for one cart only, not for %s', async (_, lines) => {
    await using shop = await new Shop().open();
    const couponId = await shop.createCoupon();
    valueOf(await shop.redeem('A-1', { amount: 1000 }));
    expect(refusalOf(await shop.redeem('A-1', ...lines))).toBe('order_reused');
    expect(shop.store.redemptions.countOf(accountId, couponId)).toBe(1);
  });

  it('an order redeems one code in one currency', async () => {
    await using shop = await new Shop().open();
    await shop.createCoupon();
    await shop.createCoupon({ code: 'AUTUMN' });
    valueOf(await shop.redeem('A-1', {}));
    for (const changes of [{ code: 'autumn' }, { currency: 'EUR' }]) {
      const command = { accountId, order: 'A-1', cart: { ...buildCart({}), ...changes } };
      expect(refusalOf(await shop.writer.write('redeemCoupon', command))).toBe('order_reused');
    }
  });

  it('a coupon is not redeemed more often than its limit, and once more after a redemption is voided', async () => {
    await using shop = await new Shop().open();
    await shop.createCoupon({ usageLimit: 2 });
    valueOf(await shop.redeem('A-1', {}));
    valueOf(await shop.redeem('A-2', {}));
    const refused = await shop.redeem('A-3', {});
    expect(refusalOf(refused)).toBe('coupon_not_redeemable');
    expect(refused).toMatchObject({ problem: { reasons: ['usage_limit_reached'] } });
    valueOf(await shop.void('A-1'));
    expect(valueOf(await shop.redeem('A-3', {})).isNew).toBe(true);
    expect(refusalOf(await shop.redeem('A-1', {}))).toBe('coupon_not_redeemable');
  });

  it('a coupon is redeemed only for products of its account', async () => {
    await using shop = await new Shop().open();
    const { account } = valueOf(await shop.writer.write('addAccount', { name: 'Other', apiKey: null }));
    await shop.addProduct('theirs', { of: account.accountId });
    await shop.createCoupon();
    await shop.createCoupon({ code: 'THEIRS' }, account.accountId);
    expect(await shop.redeem('A-1', {}, { productKey: 'theirs' }, { productKey: 'nowhere' })).toMatchObject({
      problem: {
        code: 'parameters_invalid',
        errors: [
          { parameter: 'items[1].product_key', code: 'product_not_found' },
          { parameter: 'items[2].product_key', code: 'product_not_found' },
        ],
      },
    });
    const theirs = { accountId, order: 'A-1', cart: { ...buildCart({}), code: 'THEIRS' } };
    expect(await shop.writer.write('redeemCoupon', theirs)).toMatchObject({
      problem: { reasons: ['unknown_code'] },
    });
  });

  it('a coupon that has not started is refused to an agent whose clock is ahead', async () => {
    await using shop = await new Shop().open();
    await shop.createCoupon({ startAt: shop.now + second });
    expect(await shop.redeemAt('A-1', shop.now + day)).toMatchObject({
      problem: { reasons: ['not_started'] },
    });
  });

  it('collections and recurring prices come from the catalogue, whatever the cart says', async () => {
    await using shop = await new Shop().open();
    await shop.createCoupon({ scope: { type: 'collection', collectionId: 'set' } });
    const claimed = await shop.redeem('A-1', { productKey: 'press', collectionIds: ['set'] });
    expect(claimed).toMatchObject({ problem: { reasons: ['collection_not_covered'] } });
    const recurring = await shop.redeem('A-1', { productKey: 'monthly' });
    expect(recurring).toMatchObject({ problem: { reasons: ['recurring_not_covered'] } });
    const { quote } = valueOf(
      await shop.redeem('A-1', { productKey: 'brush' }, { productKey: 'monthly' }),
    ).redemption;
    expect(quote.lines.map((line) => line.discount)).toEqual([200, 0]);
  });
});

describe('voiding a redemption', () => {
  it('a redemption is voided once, and the order may then redeem another cart', async () => {
    await using shop = await new Shop().open();
    const couponId = await shop.createCoupon();
    expect(refusalOf(await shop.void('A-1'))).toBe('redemption_not_found');
    valueOf(await shop.redeem('A-1', {}));
    expect(valueOf(await shop.void('A-1'))).toEqual({ order: 'A-1', couponId });
    expect(refusalOf(await shop.void('A-1'))).toBe('redemption_not_found');
    expect(valueOf(await shop.redeem('A-1', { amount: 5 })).isNew).toBe(true);
  });

  it('a redemption is voided only by its own account', async () => {
    await using shop = await new Shop().open();
    await shop.createCoupon();
    valueOf(await shop.redeem('A-1', {}));
    const voided = await shop.writer.write('voidRedemption', { accountId: 'other', order: 'A-1' });
    expect(refusalOf(voided)).toBe('redemption_not_found');
    expect(shop.store.redemptions.get(accountId, 'A-1')).not.toBeNull();
  });

  describe('the void of an agent finds nothing to void', () => {
    it('the agent sends its redemption again afterwards, and its void again: the redemption is voided', async () => {
      await using shop = await new Shop().open();
      const couponId = await shop.createCoupon({ usageLimit: 1 });
      const void_ = new AgentVoid(shop, shop.now);
      expect(await void_.send()).toBeNull();
      shop.pass(second);
      valueOf(await shop.redeemAt('A-1', void_.createdAt - second));
      expect(await void_.send()).toBe(couponId);
      expect(shop.store.redemptions.get(accountId, 'A-1')).toBeNull();
      expect(shop.store.redemptions.countOf(accountId, couponId)).toBe(0);
    });

    it.each([
      ['is right', 0],
      ['is a day behind', -day],
      ['is a day ahead', day],
    ])(
      'a later redemption stays, however late the void arrives again, if the clock of the agent %s',
      async (_, byMs) => {
        await using shop = await new Shop().open();
        await shop.createCoupon();
        const void_ = new AgentVoid(shop, shop.now + byMs);
        await void_.send();
        shop.pass(2 * second);
        const { redemption } = valueOf(await shop.redeemAt('A-1', void_.createdAt + second));
        expect(await void_.send()).toBeNull();
        expect(shop.store.redemptions.get(accountId, 'A-1')).toEqual(redemption);
      },
    );

    it('the void is carried out once', async () => {
      await using shop = await new Shop().open();
      const couponId = await shop.createCoupon();
      const void_ = new AgentVoid(shop, shop.now);
      await void_.send();
      valueOf(await shop.redeemAt('A-1', void_.createdAt));
      expect(await void_.send()).toBe(couponId);
      valueOf(await shop.redeemAt('A-1', void_.createdAt));
      expect(await void_.send()).toBe(couponId);
      expect(shop.store.redemptions.countOf(accountId, couponId)).toBe(1);
    });
  });
});

/** A void in the outbox of an agent, whose caller asked at an instant of the agent's clock. */
class AgentVoid {
  readonly createdAt: number;
  readonly #shop: Shop;

  constructor(shop: Shop, createdAt: number) {
    this.#shop = shop;
    this.createdAt = createdAt;
  }

  /** Returns the coupon whose redemption was voided; null: there was nothing to void. */
  async send(): Promise<number | null> {
    const keyed = { id: 'v', createdAt: this.createdAt, epoch: null, isRepeat: true, seenRevision: null };
    const idempotency = { credential: 'account:default', key: 'v', fingerprint: 'void A-1', keyed };
    const command = { accountId, order: 'A-1', isFromAgent: true };
    return valueOf(await this.#shop.writer.write('voidRedemption', command, { idempotency })).couponId;
  }
}
