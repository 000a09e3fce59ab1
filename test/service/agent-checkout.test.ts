import { describe, expect, it } from 'vitest';
import type { Coupon } from '../../src/domain/checkout/coupon.ts';
import type { Cart } from '../../src/domain/checkout/quote.ts';
import { agentCheckoutService } from '../../src/service/agent/checkout.ts';
import type { CouponPage } from '../../src/service/ports.ts';
import type { CheckoutService } from '../../src/service/services.ts';
import { buildCart, buildCoupon } from '../support/builders/coupon-builders.ts';
import { createManualHarness, never, type ManualHarness } from '../support/harness/manual-harness.ts';
import { day, minute, no, refusalOf, second, valueOf } from '../support/harness/service-harness.ts';

const accountId = 'default';
const asked = { actor: null, requestId: null, idempotency: null };

function checkout(harness: ManualHarness, { isConfigured = true } = {}): CheckoutService {
  const { store: reader, writer, clock, sync, freshness, maxPending } = harness;
  return agentCheckoutService({
    reader,
    writer,
    clock,
    fetcher: sync.coupons,
    isConfigured: () => isConfigured,
    deliveries: sync.delivery,
    settings: () => ({ freshness, refreshMs: 0, unknownMs: minute, maxPending, timeoutMs: 10 * second }),
  });
}

/** Some coupons as the whole list of the upstream, seen now. */
async function mirror(harness: ManualHarness, ...coupons: readonly Coupon[]): Promise<void> {
  const command = { coupons, confirmedAt: harness.clock.now(), extent: 'whole' } as const;
  valueOf(await harness.writer.write('mirrorCoupons', command));
}

/** Answers the list that is waiting upstream. */
async function listed(harness: ManualHarness, ...coupons: readonly Coupon[]): Promise<void> {
  await listedWith(harness, { coupons, unreadable: [] });
}

async function listedWith(harness: ManualHarness, value: CouponPage): Promise<void> {
  await harness.time.settle();
  const [request, ...others] = harness.arrivedCoupons.splice(0);
  if (request?.kind !== 'list' || others.length > 0) throw new Error('no list has arrived alone');
  await request.answer({
    outcome: 'applied',
    value,
    confirmedAt: harness.clock.now(),
    isCached: false,
  });
}

function quote(harness: ManualHarness, cart: Cart = buildCart({})) {
  return checkout(harness).quote(accountId, cart, never);
}

function redeem(harness: ManualHarness, order: string, cart: Cart = buildCart({})) {
  return checkout(harness).redeem({ accountId, order, cart }, asked, never);
}

it('one odd coupon at the store leaves the quotes of the others, and its own quote says why', async () => {
  await using harness = await createManualHarness();
  const good = buildCoupon({ id: 7 });
  const odd = { id: 8, code: 'Odd', fault: 'coupon_type: Invalid option' };
  const quoted = quote(harness);
  await listedWith(harness, { coupons: [good], unreadable: [odd] });
  expect(valueOf(await quoted).quote).toMatchObject({ couponId: 7, reasons: [] });
  // The second answer comes without another list.
  for (const code of ['ODD', 'odd']) {
    const refused = await quote(harness, { ...buildCart({}), code });
    expect(refusalOf(refused)).toBe('upstream_unreachable');
    const why = 'The upstream has a coupon with this code that cannot be read: coupon_type: Invalid option';
    expect(JSON.stringify(refused)).toContain(why);
  }
  expect(valueOf(await quote(harness, { ...buildCart({}), code: 'NONE' })).quote.reasons).toEqual([
    'unknown_code',
  ]);
});

it('a pasted coupon code is quoted and redeemed as the coupon with that code', async () => {
  await using harness = await createManualHarness();
  const [plain, unusual] = [buildCoupon({ id: 7, code: 'SAVE-20' }), buildCoupon({ id: 8, code: 'OLD–1' })];
  await mirror(harness, plain, unusual);
  for (const code of ['SAVE–20', 'SAVE-20\u200b', 'ＳＡＶＥ-20']) {
    expect(valueOf(await quote(harness, { ...buildCart({}), code })).quote).toMatchObject({
      couponId: 7,
      reasons: [],
    });
    const redeemed = valueOf(await redeem(harness, 'order', { ...buildCart({}), code }));
    expect(redeemed.redemption.quote).toMatchObject({ couponId: 7 });
  }
  expect(valueOf(await quote(harness, { ...buildCart({}), code: 'OLD–1' })).quote).toMatchObject({
    couponId: 8,
  });
  expect(harness.arrivedCoupons).toEqual([]);
});

describe('coupons at checkout on an agent', () => {
  it('an agent quotes a coupon from the mirror without asking the upstream', async () => {
    await using harness = await createManualHarness();
    await mirror(harness, buildCoupon({ id: 7 }));
    const { quote: quoted, provenance } = valueOf(await quote(harness));
    expect(quoted).toMatchObject({ couponId: 7, discount: 200, reasons: [] });
    expect(provenance).toMatchObject({ freshness: 'fresh', cache: 'hit', pending: 0 });
    expect(harness.arrivedCoupons).toEqual([]);
  });

  it('an agent takes products, collections and recurring prices from the cart', async () => {
    await using harness = await createManualHarness();
    await mirror(harness, buildCoupon({ id: 7, scope: { type: 'collection', collectionId: 'set' } }));
    const cart = buildCart({ collectionIds: ['set'] }, { collectionIds: ['set'], recurring: true }, {});
    const { quote: quoted } = valueOf(await quote(harness, cart));
    expect(quoted.lines.map((line) => line.discount)).toEqual([200, 0, 0]);
  });

  it('an agent redeems a coupon while the upstream is down, up to the limit, and once more after a redemption is voided', async () => {
    await using harness = await createManualHarness();
    await mirror(harness, buildCoupon({ id: 7, usageLimit: 1 }));
    const { redemption } = valueOf(await redeem(harness, 'A-1'));
    expect(redemption).toMatchObject({ order: 'A-1', couponId: 7, quote: { discount: 200 } });
    expect(await redeem(harness, 'A-2')).toMatchObject({ problem: { reasons: ['usage_limit_reached'] } });
    expect(valueOf(await quote(harness)).quote.reasons).toEqual(['usage_limit_reached']);
    valueOf(await harness.writer.write('voidRedemption', { accountId, order: 'A-1' }));
    expect(valueOf(await redeem(harness, 'A-2')).isNew).toBe(true);
    expect(harness.arrivedCoupons).toEqual([]);
  });

  it('an agent repeats the response for the same order and cart, even after the coupon has left the mirror', async () => {
    await using harness = await createManualHarness();
    await mirror(harness, buildCoupon({ id: 7 }));
    const { redemption } = valueOf(await redeem(harness, 'A-1'));
    valueOf(await harness.writer.write('forgetCoupon', { id: 7 }));
    expect(valueOf(await redeem(harness, 'A-1'))).toMatchObject({ redemption, isNew: false });
  });

  it('an agent asks the upstream for an unknown coupon code, but not for each quote', async () => {
    await using harness = await createManualHarness();
    await mirror(harness);
    expect(valueOf(await quote(harness)).quote.reasons).toEqual(['unknown_code']);
    await harness.passes(minute + second);
    const asking = quote(harness);
    await listed(harness, buildCoupon({ id: 9 }));
    const { quote: quoted, provenance } = valueOf(await asking);
    expect(quoted).toMatchObject({ couponId: 9, discount: 200 });
    expect(provenance).toMatchObject({ freshness: 'fresh', cache: 'miss' });
    expect(valueOf(await quote(harness, { ...buildCart({}), code: 'NONE' })).quote.reasons).toEqual([
      'unknown_code',
    ]);
    expect(harness.arrivedCoupons).toEqual([]);
  });

  it('a coupon code that the mirror does not have is unknown while the upstream is down', async () => {
    await using harness = await createManualHarness();
    await mirror(harness);
    await harness.passes(day + minute);
    const asking = quote(harness);
    await harness.time.settle();
    const [request] = harness.arrivedCoupons.splice(0);
    if (request?.kind !== 'list') throw new Error('no list has arrived');
    await request.answer(no('unreachable'));
    const { quote: quoted, provenance } = valueOf(await asking);
    expect(quoted.reasons).toEqual(['unknown_code']);
    expect(provenance).toMatchObject({ freshness: 'stale' });
  });

  it('a quote is refused if coupons were never read or are not configured', async () => {
    await using harness = await createManualHarness();
    const asking = quote(harness);
    await harness.time.settle();
    const [request] = harness.arrivedCoupons.splice(0);
    if (request?.kind !== 'list') throw new Error('no list has arrived');
    await request.answer(no('unreachable'));
    expect(refusalOf(await asking)).toBe('upstream_unreachable');
    const none = checkout(harness, { isConfigured: false });
    expect(refusalOf(await none.quote(accountId, buildCart({}), never))).toBe('coupons_not_configured');
    const command = { accountId, order: 'A-1', cart: buildCart({}) };
    expect(refusalOf(await none.redeem(command, asked, never))).toBe('coupons_not_configured');
  });

  it('an agent quotes a stale coupon at once, and reads the list in the background', async () => {
    await using harness = await createManualHarness();
    await mirror(harness, buildCoupon({ id: 7 }));
    await harness.passes(day + minute);
    expect(valueOf(await quote(harness)).provenance).toMatchObject({ freshness: 'stale', cache: 'hit' });
    await listed(harness, buildCoupon({ id: 7, endAt: harness.clock.now() - second }));
    expect(valueOf(await quote(harness)).quote.reasons).toEqual(['ended']);
  });

  it('an agent asks the upstream about a coupon past its grace, and quotes the old coupon if the upstream does not answer', async () => {
    await using harness = await createManualHarness();
    await mirror(harness, buildCoupon({ id: 7 }));
    await harness.passes(14 * day + minute);
    const away = quote(harness);
    await harness.time.settle();
    const [request] = harness.arrivedCoupons.splice(0);
    if (request?.kind !== 'list') throw new Error('no list has arrived');
    await request.answer(no('unreachable'));
    expect(valueOf(await away)).toMatchObject({
      quote: { couponId: 7, reasons: [] },
      provenance: { freshness: 'expired', cache: 'hit' },
    });
    const back = quote(harness);
    await listed(harness, buildCoupon({ id: 7, endAt: harness.clock.now() - second }));
    const { quote: quoted, provenance } = valueOf(await back);
    expect([quoted.reasons, provenance]).toMatchObject([['ended'], { freshness: 'fresh', cache: 'miss' }]);
  });

  it('a coupon past its grace that is no longer listed does not cause a request for each quote', async () => {
    await using harness = await createManualHarness();
    await mirror(harness, buildCoupon({ id: 7 }));
    await harness.passes(14 * day + minute);
    const first = quote(harness);
    await listed(harness);
    await harness.time.settle();
    const [request] = harness.arrivedCoupons.splice(0);
    if (request?.kind !== 'get') throw new Error('it was not asked for by its id');
    await request.answer(no('unreachable'));
    expect(valueOf(await first).provenance).toMatchObject({ freshness: 'expired' });
    expect(valueOf(await quote(harness)).provenance).toMatchObject({ freshness: 'expired', cache: 'hit' });
    expect(harness.arrivedCoupons).toEqual([]);
  });

  it('a provisional coupon keeps its redemptions when it gets its real id', async () => {
    await using harness = await createManualHarness();
    const { id: _, ...terms } = buildCoupon({ usageLimit: 1 });
    const command = { terms, isSentNow: true, maxPending: 10 };
    const { coupon, operationId } = valueOf(await harness.writer.write('queueCoupon', command));
    const { redemption, provenance } = valueOf(await redeem(harness, 'A-1'));
    expect([redemption.couponId, provenance.freshness]).toEqual([coupon.id, 'provisional']);
    const outcome = { outcome: 'applied', confirmedAt: harness.now, isCached: false } as const;
    valueOf(
      await harness.writer.write('recordCouponResponse', {
        operationId,
        outcome: { ...outcome, value: { ...terms, id: 12 } },
        caller: null,
        policy: harness.policy,
      }),
    );
    expect(harness.store.redemptions.get(accountId, 'A-1')).toMatchObject({
      couponId: 12,
      quote: { couponId: 12 },
    });
    expect(valueOf(await quote(harness)).quote.reasons).toEqual(['usage_limit_reached']);
  });
});
