import { describe, expect, it } from 'vitest';
import { notSent } from '../../src/domain/outbox/outcome.ts';
import { isLatchkey } from '../../src/service/outbox/upstream/identity.ts';
import { buildCart } from '../support/builders/coupon-builders.ts';
import { lostAnswer, type LatchkeyVendor } from '../support/harness/latchkey-vendor.ts';
import { minute, second, startLatchkeyHarness, SyncHarness } from '../support/harness/sync-harness.ts';

type OfLatchkey = SyncHarness & { latchkey: LatchkeyVendor };

async function start(): Promise<OfLatchkey> {
  const harness = await startLatchkeyHarness(['KEY']);
  await harness.vendor.coupons.start();
  return harness;
}

/** An agent that has mirrored a coupon of its upstream, which can be used so many times. */
async function startWithCoupon(usageLimit: number | null = null): Promise<OfLatchkey> {
  const harness = await start();
  await harness.vendor.coupons.createCoupon({ usageLimit });
  await harness.quote();
  return harness;
}

function depthOf({ store }: SyncHarness) {
  return store.operations.depth();
}

function operationOf({ store }: SyncHarness, order: string) {
  const operation = store.operations
    .list(null, { limit: 100, offset: 0 })
    .find(({ subject }) => subject === order);
  if (operation === undefined) throw new Error(`no operation about ${order} is open`);
  return operation;
}

/** No change of coupons arrives. */
function cutOff({ vendor }: SyncHarness): void {
  vendor.couponTrouble = 'cut';
}

/** Changes of coupons arrive, and their answers are lost. */
function loseAnswers({ vendor }: SyncHarness): void {
  vendor.couponTrouble = 'lost';
}

function reconnect({ vendor }: SyncHarness): void {
  vendor.couponTrouble = null;
}

const usedUp = {
  ok: false,
  problem: { code: 'coupon_not_redeemable', reasons: ['usage_limit_reached'] },
};

describe('a redemption at an agent whose upstream is Latchkey', () => {
  it('is counted by the upstream before the caller is answered', async () => {
    using harness = await startWithCoupon(2);
    const redeemed = await harness.redeem('A-1');
    expect(redeemed).toMatchObject({ ok: true, value: { isNew: true, provenance: { pending: 0 } } });
    expect(harness.vendor.coupons.redemption('A-1')).toMatchObject({ quote: { discount: 200 } });
    expect(depthOf(harness)).toMatchObject({ delivered: 1, pending: 0, in_flight: 0 });
  });

  it('is refused if other agents have used the coupon up, and leaves nothing here', async () => {
    using harness = await startWithCoupon(1);
    expect(await harness.vendor.coupons.redeem('B-1')).toBe(true);
    expect(await harness.redeem('A-1')).toMatchObject(usedUp);
    expect(harness.redemption('A-1')).toBeNull();
    expect(depthOf(harness)).toMatchObject({ cancelled: 1, pending: 0, dead: 0 });
    expect(await harness.redeem('A-1')).toMatchObject(usedUp);
  });

  it('may be accepted by the upstream although the mirror says that the coupon is used up', async () => {
    using harness = await startWithCoupon(1);
    await harness.redeem('A-1');
    await harness.vendor.coupons.writer.write('voidRedemption', { accountId: 'default', order: 'A-1' });
    expect(await harness.redeem('A-2')).toMatchObject({ ok: true, value: { isNew: true } });
  });

  it('is refused by the mirror if the upstream does not answer, and is voided there if it had arrived', async () => {
    using harness = await startWithCoupon(1);
    await harness.redeem('A-1');
    await harness.vendor.coupons.writer.write('voidRedemption', { accountId: 'default', order: 'A-1' });
    loseAnswers(harness);
    expect(await harness.redeem('A-2')).toMatchObject(usedUp);
    expect(harness.redemption('A-2')).toBeNull();
    reconnect(harness);
    await harness.time.advance(minute);
    expect(harness.vendor.coupons.redemption('A-2')).toBeNull();
    expect(depthOf(harness)).toMatchObject({ pending: 0, in_flight: 0, dead: 0 });
  });

  it('gets the quote of the upstream if that is another one', async () => {
    using harness = await startWithCoupon();
    const { store, writer } = harness.vendor.coupons;
    const [coupon] = store.coupons.list('default', { limit: 1, offset: 0 });
    if (coupon === undefined) throw new Error('there is no coupon');
    const { id, ...terms } = coupon;
    const discount = { type: 'percent', percentOff: 50 } as const;
    await writer.write('updateCoupon', { accountId: 'default', id, terms: { ...terms, discount } });
    const redeemed = await harness.redeem('A-1');
    expect(redeemed).toMatchObject({ value: { redemption: { quote: { discount: 500, total: 500 } } } });
    expect(await harness.redeem('A-1')).toMatchObject({
      value: { isNew: false, redemption: { quote: { discount: 500 } } },
    });
  });

  it('is taken from the mirror while the upstream is away, and is counted later beyond the limit', async () => {
    using harness = await startWithCoupon(1);
    cutOff(harness);
    expect(await harness.redeem('A-1')).toMatchObject({ ok: true, value: { provenance: { pending: 1 } } });
    expect(await harness.vendor.coupons.redeem('B-1')).toBe(true);
    reconnect(harness);
    await harness.time.advance(minute);
    expect(harness.vendor.coupons.redemption('A-1')).toMatchObject({ overLimit: true });
    expect(harness.redemption('A-1')).toMatchObject({ overLimit: true });
    expect(depthOf(harness)).toMatchObject({ pending: 0, in_flight: 0, dead: 0 });
  });

  it('that was refused, and whose answer was lost, is sent again as answered', async () => {
    using harness = await startWithCoupon(1);
    await harness.vendor.coupons.redeem('B-1');
    loseAnswers(harness);
    expect(await harness.redeem('A-1')).toMatchObject({ ok: true, value: { isNew: true } });
    expect(harness.vendor.coupons.redemption('A-1')).toBeNull();
    reconnect(harness);
    await harness.time.advance(minute);
    expect(harness.vendor.coupons.redemption('A-1')).toMatchObject({ overLimit: true });
    expect(harness.redemption('A-1')).toMatchObject({ overLimit: true });
    expect(depthOf(harness)).toMatchObject({ delivered: 1, cancelled: 0, pending: 0 });
  });

  it('that is refused after its caller has waited in vain is sent again as answered', async () => {
    using harness = await startWithCoupon(1);
    await harness.vendor.coupons.redeem('B-1');
    harness.vendor.latencyMs = 15 * second;
    expect(await harness.redeem('A-1')).toMatchObject({ value: { provenance: { pending: 1 } } });
    await harness.time.advance(minute);
    expect(harness.vendor.coupons.redemption('A-1')).toMatchObject({ overLimit: true });
    expect(harness.redemption('A-1')).toMatchObject({ overLimit: true });
    expect(depthOf(harness)).toMatchObject({ delivered: 1, dead: 0, pending: 0 });
  });

  it('whose answer was lost counts once, whatever happens to the agent', async () => {
    using harness = await startWithCoupon(2);
    loseAnswers(harness);
    await harness.redeem('A-1');
    await harness.restart();
    await harness.time.advance(10 * second);
    reconnect(harness);
    await harness.time.advance(minute);
    expect(harness.vendor.coupons.redemption('A-1')).toMatchObject({ order: 'A-1' });
    expect(harness.vendor.coupons.redemption('A-1')).not.toHaveProperty('overLimit');
    const [coupon] = harness.vendor.coupons.list();
    expect(harness.vendor.coupons.store.redemptions.countOf('default', coupon?.id ?? 0)).toBe(1);
    expect(depthOf(harness)).toMatchObject({ delivered: 1, in_flight: 0, uncertain: 0 });
  });

  it('that was refused when the agent was killed before its caller was answered leaves nothing', async () => {
    using harness = await startWithCoupon(1);
    await harness.vendor.coupons.redeem('B-1');
    loseAnswers(harness);
    void harness.beginRedeem('A-1');
    await harness.time.advance(15);
    await harness.restart();
    reconnect(harness);
    await harness.time.advance(minute);
    expect(harness.redemption('A-1')).toBeNull();
    expect(depthOf(harness)).toMatchObject({ cancelled: 1, pending: 0, in_flight: 0, dead: 0 });
  });

  it('that the upstream refuses for another reason waits for a person, who gives it up', async () => {
    using harness = await startWithCoupon();
    cutOff(harness);
    const cart = buildCart({ productKey: 'unknown' });
    expect(await harness.redeem('A-1', cart)).toMatchObject({ ok: true });
    reconnect(harness);
    await harness.time.advance(minute);
    const operation = operationOf(harness, 'A-1');
    expect(operation).toMatchObject({
      kind: 'redeem',
      progress: { state: 'dead', cause: 'refused' },
      lastError: 'the upstream answered parameters_invalid',
    });
    expect(harness.redemption('A-1')).not.toBeNull();
    const decision = { operationId: operation.id, decision: 'drop' } as const;
    expect(await harness.writer.write('decideOperation', decision)).toMatchObject({ ok: true });
    expect(harness.redemption('A-1')).toBeNull();
  });

  it('gets the same response under the same idempotency key, and only the same cart gets it for an order', async () => {
    using harness = await startWithCoupon(1);
    const first = await harness.redeem('A-1', buildCart({}), 'key');
    if (!first.ok) throw new Error(first.problem.detail);
    expect(await harness.redeem('A-1', buildCart({}), 'key')).toMatchObject({
      value: { isNew: true, redemption: first.value.redemption },
    });
    expect(await harness.redeem('A-1')).toMatchObject({ ok: true, value: { isNew: false } });
    expect(await harness.redeem('A-1', buildCart({ amount: 1 }))).toMatchObject({
      problem: { code: 'order_reused' },
    });
    expect(harness.vendor.keyedCoupons).toHaveLength(1);
  });

  it('of a cart that is too long for a request is refused', async () => {
    using harness = await startWithCoupon();
    const productKey = 'p'.repeat(255);
    const lines = Array.from({ length: 1_000 }, () => ({ productKey, collectionIds: ['c'.repeat(100)] }));
    expect(await harness.redeem('A-1', buildCart(...lines))).toMatchObject({
      problem: { code: 'body_too_large' },
    });
    expect(harness.redemption('A-1')).toBeNull();
  });

  it('of a long cart gets the quote of the upstream', async () => {
    using harness = await startWithCoupon();
    const lines = Array.from({ length: 1_000 }, (_, index) => ({ amount: 1_000_000 + index }));
    const [coupon] = harness.vendor.coupons.list();
    if (coupon === undefined) throw new Error('there is no coupon');
    const { id, ...terms } = coupon;
    const discount = { type: 'percent', percentOff: 50 } as const;
    const command = { accountId: 'default', id, terms: { ...terms, discount } };
    await harness.vendor.coupons.writer.write('updateCoupon', command);
    const redeemed = await harness.redeem('A-1', buildCart(...lines));
    const expected = harness.vendor.coupons.redemption('A-1')?.quote.discount;
    expect(expected).toBeGreaterThan(400_000_000);
    expect(redeemed).toMatchObject({ value: { redemption: { quote: { discount: expected } } } });
  });
});

describe('a void at an agent whose upstream is Latchkey', () => {
  it('gives the use back at the upstream', async () => {
    using harness = await startWithCoupon(1);
    await harness.redeem('A-1');
    expect(await harness.void('A-1')).toMatchObject({ ok: true });
    expect(harness.vendor.coupons.redemption('A-1')).toBeNull();
    expect(await harness.vendor.coupons.redeem('B-1')).toBe(true);
    expect(await harness.void('A-1')).toMatchObject({ problem: { code: 'redemption_not_found' } });
  });

  it('of a redemption that was never sent cancels it', async () => {
    using harness = await startWithCoupon(1);
    harness.sync.limiter.pause();
    await harness.redeem('A-1');
    await harness.void('A-1');
    harness.sync.limiter.resume();
    await harness.time.advance(minute);
    expect(depthOf(harness)).toMatchObject({ cancelled: 1, pending: 0 });
    expect(harness.vendor.asked).not.toContain('redeem A-1');
  });

  it('follows its redemption, and the order can be used again', async () => {
    using harness = await startWithCoupon(1);
    loseAnswers(harness);
    await harness.redeem('A-1');
    await harness.void('A-1');
    expect(await harness.redeem('A-1')).toMatchObject({ ok: true, value: { isNew: true } });
    reconnect(harness);
    await harness.time.advance(minute);
    expect(harness.vendor.coupons.redemption('A-1')).not.toBeNull();
    expect(harness.vendor.coupons.redemption('A-1')).not.toHaveProperty('overLimit');
    expect(harness.redemption('A-1')).not.toBeNull();
    expect(depthOf(harness)).toMatchObject({ delivered: 3, pending: 0, in_flight: 0, dead: 0 });
  });

  it('of a redemption that the upstream does not have is done', async () => {
    using harness = await startWithCoupon();
    await harness.redeem('A-1');
    await harness.vendor.coupons.writer.write('voidRedemption', { accountId: 'default', order: 'A-1' });
    expect(await harness.void('A-1')).toMatchObject({ ok: true });
    expect(depthOf(harness)).toMatchObject({ delivered: 2, dead: 0 });
  });
});

describe('a new coupon at an agent whose upstream is Latchkey', () => {
  it('gets its real id from the answer of the upstream', async () => {
    using harness = await start();
    const created = await harness.createCoupon({ code: 'NEW' });
    const [coupon] = harness.vendor.coupons.list();
    expect(created).toMatchObject({ ok: true, value: { coupon: { id: coupon?.id, code: 'NEW' } } });
    expect(harness.vendor.keyedCoupons).toHaveLength(1);
  });

  it('is refused as at the upstream, and leaves nothing', async () => {
    using harness = await start();
    await harness.vendor.coupons.createCoupon({ code: 'NEW', usageLimit: 3 });
    expect(await harness.createCoupon({ code: 'new' })).toMatchObject({
      problem: { code: 'upstream_refused', status: 409 },
    });
    const scope = { type: 'single', productKey: 'unknown' } as const;
    expect(await harness.createCoupon({ code: 'OTHER', scope })).toMatchObject({
      problem: { code: 'upstream_refused', status: 422 },
    });
    expect(harness.store.mirror.count()).toBe(0);
    expect(depthOf(harness)).toMatchObject({ cancelled: 2, pending: 0 });
  });

  it('is queued while the upstream is away, with the orders that use it', async () => {
    using harness = await start();
    cutOff(harness);
    const created = await harness.createCoupon({ code: 'SPRING', usageLimit: 1 });
    if (!created.ok) throw new Error(created.problem.detail);
    expect(created.value).toMatchObject({ coupon: { id: -1 }, provenance: { freshness: 'provisional' } });
    expect(await harness.redeem('A-1')).toMatchObject({ ok: true, value: { redemption: { couponId: -1 } } });
    reconnect(harness);
    await harness.time.advance(minute);
    const [coupon] = harness.vendor.coupons.list();
    expect(harness.store.mirror.get(-1)).toMatchObject({ coupon: { id: coupon?.id } });
    expect(harness.redemption('A-1')).toMatchObject({ couponId: coupon?.id });
    expect(harness.vendor.coupons.redemption('A-1')).toMatchObject({ couponId: coupon?.id });
    expect(depthOf(harness)).toMatchObject({ delivered: 2, pending: 0, in_flight: 0 });
  });

  it('keeps its provisional id if the upstream is an agent that has only queued it, until the upstream lists it', async () => {
    using harness = await start();
    const { coupons } = harness.vendor;
    const createKeyed = coupons.createKeyed.bind(coupons);
    coupons.createKeyed = async (terms) => {
      const value = { id: -7, ...terms };
      return { outcome: 'applied', value, confirmedAt: 0, isCached: false };
    };
    await harness.createCoupon({ code: 'NEW' });
    coupons.createKeyed = createKeyed;
    expect(depthOf(harness)).toMatchObject({ delivered: 1, in_flight: 0 });
    expect(harness.store.mirror.get(-1)).toMatchObject({ coupon: { id: -1 }, confirmedAt: null });
    const { id: realId } = await coupons.createCoupon({ code: 'NEW' });
    await harness.within(harness.sync.coupons.list(new AbortController().signal));
    expect(harness.store.mirror.get(-1)).toMatchObject({ coupon: { id: realId } });
  });

  it('keeps its provisional id although a list that was begun before does not show it', async () => {
    using harness = await startWithCoupon();
    const { coupons } = harness.vendor;
    coupons.createKeyed = async (terms) => {
      const value = { id: -7, ...terms };
      return { outcome: 'applied', value, confirmedAt: 0, isCached: false };
    };
    const listed = harness.sync.coupons.list(new AbortController().signal);
    await harness.createCoupon({ code: 'NEW' });
    await harness.within(listed);
    expect(harness.store.mirror.get(-1)).toMatchObject({ coupon: { code: 'NEW' } });
  });

  it('is created before the orders that use it are counted, also if the agent was killed meanwhile', async () => {
    using harness = await startWithCoupon();
    await harness.redeem('A-1');
    cutOff(harness);
    harness.sync.limiter.pause();
    await harness.void('A-1');
    await harness.createCoupon({ code: 'NEW' });
    await harness.redeem('A-1', { ...buildCart({}), code: 'NEW' });
    reconnect(harness);
    harness.sync.limiter.resume();
    await harness.time.advance(10);
    await harness.restart();
    await harness.time.advance(2 * minute);
    expect(depthOf(harness)).toMatchObject({ delivered: 4, dead: 0, pending: 0, in_flight: 0 });
    expect(harness.vendor.coupons.redemption('A-1')?.cart.code).toBe('NEW');
  });

  it('is waited for by the orders that arrive before it', async () => {
    using harness = await start();
    cutOff(harness);
    await harness.createCoupon({ code: 'NEW' });
    await harness.redeem('A-1', { ...buildCart({}), code: 'NEW' });
    reconnect(harness);
    const { coupons } = harness.vendor;
    const createKeyed = coupons.createKeyed.bind(coupons);
    let lost = 0;
    coupons.createKeyed = async (...request) => (lost++ < 5 ? lostAnswer : await createKeyed(...request));
    await harness.time.advance(10 * minute);
    expect(lost).toBeGreaterThan(5);
    expect(coupons.redemption('A-1')?.cart.code).toBe('NEW');
    expect(depthOf(harness)).toMatchObject({ delivered: 2, dead: 0, pending: 0 });
  });

  it('is waited for by an order that arrives before it, also if it is created before the order is refused', async () => {
    using harness = await start();
    cutOff(harness);
    await harness.createCoupon({ code: 'NEW' });
    await harness.redeem('A-1', { ...buildCart({}), code: 'NEW' });
    reconnect(harness);
    const { coupons } = harness.vendor;
    const createKeyed = coupons.createKeyed.bind(coupons);
    const redeemKeyed = coupons.redeemKeyed.bind(coupons);
    const clock = harness.time.clock();
    const { promise: arrival, resolve: arrive } = Promise.withResolvers<void>();
    coupons.createKeyed = async (...request) => {
      await arrival;
      return await createKeyed(...request);
    };
    const answers: string[] = [];
    coupons.redeemKeyed = async (...request) => {
      const answer = await redeemKeyed(...request);
      arrive();
      await clock.sleep(second, new AbortController().signal);
      const isCreated = harness.store.operations.tail('new', 'coupon') === null;
      answers.push(`${answer.outcome}, created: ${isCreated}`);
      return answer;
    };
    await harness.time.advance(10 * minute);
    expect(answers).toEqual(['not_applied, created: true', 'applied, created: true']);
    expect(coupons.redemption('A-1')?.cart.code).toBe('NEW');
    expect(depthOf(harness)).toMatchObject({ delivered: 2, dead: 0, pending: 0 });
  });

  it('is not refused as taken by itself if the upstream has forgotten the operation', async () => {
    using harness = await start();
    loseAnswers(harness);
    await harness.createCoupon({ code: 'NEW' });
    harness.vendor.coupons.lose([], []);
    reconnect(harness);
    await harness.time.advance(2 * minute);
    const [coupon] = harness.vendor.coupons.list();
    expect(harness.store.mirror.get(-1)).toMatchObject({ coupon: { id: coupon?.id } });
    expect(depthOf(harness)).toMatchObject({ pending: 0, uncertain: 0, conflicted: 0, dead: 0 });
  });

  it('is refused if the upstream has shown its code and cannot be asked, and leaves nothing', async () => {
    using harness = await startWithCoupon();
    harness.vendor.coupons.createKeyed = () => Promise.resolve(notSent('unreachable', 'connection refused'));
    expect(await harness.createCoupon({ code: 'spring' })).toMatchObject({
      problem: { code: 'upstream_refused', status: 409 },
    });
    expect(harness.store.mirror.list({ limit: 10, offset: 0 })).toMatchObject([
      { coupon: { code: 'SPRING' } },
    ]);
    expect(depthOf(harness)).toMatchObject({ cancelled: 1, pending: 0 });
  });

  it('conflicts with another coupon that got its code meanwhile', async () => {
    using harness = await start();
    cutOff(harness);
    await harness.createCoupon({ code: 'NEW' });
    await harness.vendor.coupons.createCoupon({ code: 'NEW', usageLimit: 3 });
    reconnect(harness);
    await harness.time.advance(minute);
    expect(operationOf(harness, 'new')).toMatchObject({ progress: { state: 'conflicted' } });
    expect(harness.store.mirror.get(-1)).toBeNull();
  });

  it('stays as the list has shown it when the upstream repeats an older answer to its creation', async () => {
    using harness = await start();
    loseAnswers(harness);
    await harness.createCoupon({ code: 'NEW' });
    const { coupons } = harness.vendor;
    const [{ id } = { id: 0 }] = coupons.list();
    await coupons.writer.write('endCoupon', { accountId: 'default', id });
    await harness.within(harness.sync.coupons.list(new AbortController().signal));
    reconnect(harness);
    await harness.time.advance(minute);
    expect(depthOf(harness)).toMatchObject({ delivered: 1, pending: 0 });
    expect(harness.store.mirror.byCode('NEW')?.coupon.endAt).toBe(coupons.list()[0]?.endAt);
  });
});

describe('after a restore, changes of coupons', () => {
  it('of the agent are sent again, and none counts twice', async () => {
    using harness = await startWithCoupon(5);
    loseAnswers(harness);
    await harness.redeem('A-1');
    await harness.createCoupon({ code: 'NEW' });
    await harness.writer.write('restore', {});
    reconnect(harness);
    await harness.restart();
    await harness.time.advance(5 * minute);
    const { coupons } = harness.vendor;
    expect(coupons.list()).toHaveLength(2);
    const id = coupons.list().find(({ code }) => code === 'SPRING')?.id ?? 0;
    expect(coupons.store.redemptions.countOf('default', id)).toBe(1);
    expect(depthOf(harness)).toMatchObject({ delivered: 2, uncertain: 0, inferred: 0 });
    expect(harness.store.mirror.get(-1)?.coupon.id).toBeGreaterThan(0);
  });

  /** The upstream is put back to a backup without these coupons and redemptions, and says so in its next answer. */
  async function restoreUpstream(harness: OfLatchkey, codes: string[], orders: string[]): Promise<void> {
    harness.vendor.coupons.lose(codes, orders);
    harness.latchkey.restore();
    await harness.within(harness.sync.coupons.list(new AbortController().signal));
  }

  it('of the upstream are sent again, and a redemption that was answered stays valid beyond the limit', async () => {
    using harness = await startWithCoupon(1);
    const { coupons } = harness.vendor;
    await harness.redeem('A-1');
    await harness.createCoupon({ code: 'NEW' });
    coupons.lose(['NEW'], ['A-1']);
    await coupons.redeem('B-1');
    await restoreUpstream(harness, [], []);
    await harness.redeem('A-2');
    await harness.time.advance(2 * minute);
    expect(coupons.redemption('A-1')).toMatchObject({ overLimit: true });
    expect(harness.redemption('A-1')).toMatchObject({ overLimit: true });
    const made = coupons.list().find(({ code }) => code === 'NEW');
    expect(harness.store.mirror.get(-1)).toMatchObject({ coupon: { id: made?.id } });
    expect(depthOf(harness)).toMatchObject({ pending: 0, in_flight: 0, dead: 0, uncertain: 0 });
  });

  it('of the upstream leave an order voided, although the upstream did not know its redemption then', async () => {
    using harness = await startWithCoupon();
    const { coupons } = harness.vendor;
    await harness.redeem('A-1');
    await coupons.writer.write('voidRedemption', { accountId: 'default', order: 'A-1' });
    await harness.void('A-1');
    await restoreUpstream(harness, [], []);
    await harness.time.advance(2 * minute);
    expect(coupons.redemption('A-1')).toBeNull();
    expect(harness.redemption('A-1')).toBeNull();
    expect(depthOf(harness)).toMatchObject({ pending: 0, in_flight: 0, dead: 0 });
  });

  it('of an upstream that still has them count once', async () => {
    using harness = await startWithCoupon(5);
    const { coupons } = harness.vendor;
    for (const order of ['A-1', 'A-2']) await harness.redeem(order);
    harness.latchkey.restore();
    await harness.within(harness.sync.coupons.list(new AbortController().signal));
    await harness.time.advance(2 * minute);
    const [coupon] = coupons.list();
    expect(coupons.store.redemptions.countOf('default', coupon?.id ?? 0)).toBe(2);
    expect(harness.vendor.keyedCoupons.map(({ isRepeat }) => isRepeat)).toEqual([false, false, true, true]);
    expect(depthOf(harness)).toMatchObject({ delivered: 2, pending: 0, in_flight: 0 });
  });

  it('wait for a person if another store was met while they were under way', async () => {
    using harness = await startWithCoupon();
    loseAnswers(harness);
    await harness.redeem('A-1');
    reconnect(harness);
    harness.vendor.latencyMs = minute;
    await harness.time.advance(5 * second);
    harness.vendor.latencyMs = 20;
    harness.latchkey.epoch = 'f'.repeat(32);
    await harness.within(harness.sync.coupons.list(new AbortController().signal));
    expect(depthOf(harness)).toMatchObject({ in_flight: 1 });
    await harness.time.advance(2 * minute);
    expect(operationOf(harness, 'A-1')).toMatchObject({ progress: { state: 'uncertain', held: true } });
  });

  it('of a restored upstream may be within a limit that they were beyond', async () => {
    using harness = await startWithCoupon(1);
    const { coupons } = harness.vendor;
    cutOff(harness);
    await harness.redeem('A-1');
    await coupons.redeem('B-1');
    reconnect(harness);
    await harness.time.advance(minute);
    expect(harness.redemption('A-1')).toMatchObject({ overLimit: true });
    await restoreUpstream(harness, [], ['A-1', 'B-1']);
    await harness.time.advance(2 * minute);
    expect(coupons.redemption('A-1')).not.toHaveProperty('overLimit');
    expect(harness.redemption('A-1')).not.toHaveProperty('overLimit');
  });

  it('of a restored upstream keep redemptions with their coupons, although each gets the former id of another', async () => {
    using harness = await start();
    const { coupons } = harness.vendor;
    const codes = ['FIRST', 'SECOND', 'THIRD'];
    for (const code of codes) {
      await harness.createCoupon({ code });
      await harness.redeem(`order of ${code}`, { ...buildCart({}), code });
    }
    const orders = codes.map((code) => `order of ${code}`);
    coupons.lose(codes, orders);
    await coupons.createCoupon({ code: 'OTHER' });
    await restoreUpstream(harness, [], []);
    await harness.time.advance(2 * minute);
    for (const order of orders) {
      const { couponId } = coupons.redemption(order) ?? {};
      expect(couponId).toBeGreaterThan(0);
      expect(harness.redemption(order)).toMatchObject({ couponId });
    }
    const idOf = (wanted: string) => coupons.list().find(({ code }) => code === wanted)?.id;
    expect([-1, -2, -3].map((id) => harness.store.mirror.get(id)?.coupon.id)).toEqual(codes.map(idOf));
  });

  it('of a Latchkey above the upstream keep redemptions with their coupons, although those have exchanged their ids', async () => {
    using harness = await start();
    const { coupons } = harness.vendor;
    const codes = ['FIRST', 'SECOND'];
    for (const code of codes) {
      await harness.createCoupon({ code });
      await harness.redeem(`order of ${code}`, { ...buildCart({}), code });
    }
    coupons.lose(
      codes,
      codes.map((code) => `order of ${code}`),
    );
    // The upstream keeps its epoch: it has sent the creations again itself.
    for (const code of codes.toReversed()) await coupons.createCoupon({ code });
    await harness.within(harness.sync.coupons.list(new AbortController().signal));
    const ids = codes.map((wanted) => coupons.list().find(({ code }) => code === wanted)?.id);
    expect(codes.map((code) => harness.redemption(`order of ${code}`)?.couponId)).toEqual(ids);
    expect([-1, -2].map((id) => harness.store.mirror.get(id)?.coupon.id)).toEqual(ids);
  });
});

describe('an agent that only handles coupons', () => {
  async function startUnread(isOfLatchkey = true): Promise<SyncHarness> {
    const harness = new SyncHarness([], {}, isOfLatchkey);
    await harness.start();
    await harness.vendor.coupons.start();
    return harness;
  }

  it('finds out with its first redemption that its upstream is a Latchkey, whose usage limit holds', async () => {
    using harness = await startUnread();
    await harness.vendor.coupons.createCoupon({ usageLimit: 3 });
    for (const order of ['B-1', 'B-2']) await harness.vendor.coupons.redeem(order);
    const answers = [];
    for (const order of ['A-1', 'A-2', 'A-3']) answers.push((await harness.redeem(order)).ok);
    expect(answers).toEqual([true, false, false]);
    expect(isLatchkey(harness.store)).toBe(true);
    expect(harness.vendor.coupons.redemption('A-1')).not.toBeNull();
  });

  it('finds out before it redeems a coupon that it has mirrored earlier', async () => {
    using harness = await startUnread();
    const coupon = await harness.vendor.coupons.createCoupon({ usageLimit: 1 });
    const mirrored = { coupons: [coupon], confirmedAt: harness.wall, extent: 'whole' } as const;
    await harness.writer.write('mirrorCoupons', mirrored);
    await harness.vendor.coupons.redeem('B-1');
    expect(await harness.redeem('A-1')).toMatchObject(usedUp);
  });

  it('keeps a redemption for the upstream while nothing has shown what the upstream is', async () => {
    using harness = await startUnread();
    const coupon = await harness.vendor.coupons.createCoupon({ usageLimit: 1 });
    const mirrored = { coupons: [coupon], confirmedAt: harness.wall, extent: 'whole' } as const;
    await harness.writer.write('mirrorCoupons', mirrored);
    harness.vendor.hidesCoupons = true;
    expect(await harness.redeem('A-1')).toMatchObject({ ok: true });
    await harness.vendor.coupons.redeem('B-1');
    harness.vendor.hidesCoupons = false;
    await harness.time.advance(5 * minute);
    expect(harness.vendor.coupons.redemption('A-1')).toMatchObject({ overLimit: true });
    expect(depthOf(harness)).toMatchObject({ delivered: 1, pending: 0 });
  });

  it('finds out before it creates its first coupon, which is sent under its id', async () => {
    using harness = await startUnread();
    expect(await harness.createCoupon({ code: 'NEW' })).toMatchObject({ ok: true });
    expect(harness.vendor.keyedCoupons).toHaveLength(1);
  });

  it('sends no queued coupon without its id before it knows its upstream', async () => {
    using harness = await startUnread();
    harness.vendor.hidesCoupons = true;
    expect(await harness.createCoupon({ code: 'NEW' })).toMatchObject({ value: { coupon: { id: -1 } } });
    harness.vendor.hidesCoupons = false;
    await harness.time.advance(5 * minute);
    expect(harness.vendor.keyedCoupons).toHaveLength(1);
    expect(harness.vendor.coupons.list()).toHaveLength(1);
    expect(depthOf(harness)).toMatchObject({ delivered: 1, pending: 0, uncertain: 0 });
  });

  it('counts redemptions itself if its upstream is no Latchkey, and puts none of them into the outbox', async () => {
    using harness = await startUnread(false);
    const coupon = await harness.vendor.coupons.createCoupon({ usageLimit: 1 });
    const mirrored = { coupons: [coupon], confirmedAt: harness.wall, extent: 'whole' } as const;
    await harness.writer.write('mirrorCoupons', mirrored);
    expect(await harness.redeem('A-1')).toMatchObject({ ok: true });
    expect(await harness.redeem('A-2')).toMatchObject(usedUp);
    expect(depthOf(harness)).toMatchObject({ pending: 0, delivered: 0, cancelled: 0 });
  });
});

describe('an agent in the middle of a chain', () => {
  let ids = 0;
  const newId = (): string => `019c8443-0000-7000-8000-${(ids += 1).toString(16).padStart(12, '0')}`;

  it('asks the upstream about a redemption from below before it answers, under the same id', async () => {
    using harness = await startWithCoupon(1);
    const [one, other] = [newId(), newId()];
    expect(await harness.redeemFromBelow('A-1', { id: one })).toMatchObject({ value: { isNew: true } });
    expect(harness.vendor.coupons.redemption('A-1')).not.toBeNull();
    expect(await harness.redeemFromBelow('B-1', { id: other })).toMatchObject(usedUp);
    expect(harness.redemption('B-1')).toBeNull();
    expect(harness.vendor.keyedCoupons.map(({ id }) => id)).toEqual([one, other]);
    expect(await harness.voidFromBelow('A-1', newId())).toMatchObject({ ok: true });
    expect(harness.vendor.coupons.redemption('A-1')).toBeNull();
    expect(await harness.redeemFromBelow('B-2', { id: newId() })).toMatchObject({ ok: true });
  });

  it('passes on each redemption from below, also of an order that has redeemed its coupon, so that a void follows it', async () => {
    using harness = await startWithCoupon();
    await harness.redeem('A-1');
    cutOff(harness);
    expect(await harness.redeemFromBelow('A-1', { id: newId(), answeredAt: harness.wall })).toMatchObject({
      value: { isNew: false },
    });
    expect(await harness.voidFromBelow('A-1', newId())).toMatchObject({ ok: true });
    reconnect(harness);
    await harness.time.advance(minute);
    expect(harness.vendor.coupons.redemption('A-1')).toBeNull();
    expect(depthOf(harness)).toMatchObject({ delivered: 3, pending: 0, cancelled: 0 });
  });

  it('takes coupons and redemptions from below while the upstream is away', async () => {
    using harness = await startWithCoupon(1);
    cutOff(harness);
    expect(await harness.createCouponFromBelow({ code: 'NEW' }, newId())).toMatchObject({ ok: true });
    expect(await harness.redeemFromBelow('A-1', { id: newId() })).toMatchObject({ ok: true });
    expect(await harness.redeemFromBelow('A-2', { id: newId() })).toMatchObject(usedUp);
    const answeredAt = harness.wall;
    expect(await harness.redeemFromBelow('A-3', { id: newId(), answeredAt })).toMatchObject({
      value: { redemption: { overLimit: true } },
    });
    reconnect(harness);
    await harness.time.advance(minute);
    expect(harness.vendor.coupons.list().map(({ code }) => code)).toEqual(['SPRING', 'NEW']);
    const counted = ['A-1', 'A-3'].map((order) => harness.vendor.coupons.redemption(order));
    expect(counted).not.toContain(null);
    // The order in which they arrive is open.
    expect(counted.filter((each) => each?.overLimit === true)).toHaveLength(1);
    expect(depthOf(harness)).toMatchObject({ pending: 0, in_flight: 0, dead: 0 });
  });

  it('takes a redemption that it has refused as soon as the agent below says that it has answered', async () => {
    using harness = await startWithCoupon(1);
    await harness.vendor.coupons.redeem('theirs');
    const id = newId();
    expect(await harness.redeemFromBelow('ours', { id })).toMatchObject(usedUp);
    const answered = { id, answeredAt: harness.wall };
    expect(await harness.redeemFromBelow('ours', answered)).toMatchObject({ ok: true });
    await harness.time.advance(minute);
    expect(harness.vendor.coupons.redemption('ours')).toMatchObject({ overLimit: true });
    expect(depthOf(harness)).toMatchObject({ delivered: 1, dead: 0, pending: 0 });
  });

  it('lets the upstream decide about a redemption that was answered below and that its mirror would refuse', async () => {
    using harness = await startWithCoupon();
    const { id: hidden } = await harness.vendor.coupons.createCoupon({ code: 'HIDDEN' });
    const cart = { ...buildCart({}), code: 'HIDDEN' };
    // The mirror was just read, without this coupon.
    const sent = { id: newId(), answeredAt: harness.wall + second, cart };
    expect(await harness.redeemFromBelow('A-1', sent)).toMatchObject({
      value: { redemption: { quote: { discount: 200 } } },
    });
    expect(harness.vendor.coupons.redemption('A-1')).toMatchObject({ couponId: hidden });
    expect(harness.redemption('A-1')).toMatchObject({ order: 'A-1' });
    const unknown = { ...sent, id: newId(), cart: { ...cart, code: 'NONE' } };
    expect(await harness.redeemFromBelow('A-2', unknown)).toMatchObject({
      problem: { code: 'coupon_not_redeemable', reasons: ['unknown_code'] },
    });
  });

  it('answers that only the upstream can say, if the upstream is away, and takes the repetition under the same id', async () => {
    using harness = await startWithCoupon();
    await harness.vendor.coupons.createCoupon({ code: 'HIDDEN' });
    const cart = { ...buildCart({}), code: 'HIDDEN' };
    const sent = { id: newId(), answeredAt: harness.wall + second, cart };
    cutOff(harness);
    for (const _ of [1, 2]) {
      expect(await harness.redeemFromBelow('A-1', sent)).toMatchObject({
        problem: { code: 'upstream_unreachable' },
      });
    }
    reconnect(harness);
    await harness.time.advance(minute);
    expect(await harness.redeemFromBelow('A-1', sent)).toMatchObject({ ok: true });
    expect(depthOf(harness)).toMatchObject({ delivered: 1, dead: 0, pending: 0 });
  });

  it('passes a void on although its mirror has learned of the coupon while the redemption was under way', async () => {
    using harness = await startWithCoupon();
    await harness.vendor.coupons.createCoupon({ code: 'HIDDEN' });
    const cart = { ...buildCart({}), code: 'HIDDEN' };
    const sent = { id: newId(), answeredAt: harness.wall + second, cart };
    loseAnswers(harness);
    expect(await harness.redeemFromBelow('A-1', sent)).toMatchObject({
      problem: { code: 'upstream_unreachable' },
    });
    await harness.within(harness.sync.coupons.list(new AbortController().signal));
    expect(await harness.redeemFromBelow('A-1', sent)).toMatchObject({ ok: true });
    expect(await harness.voidFromBelow('A-1', newId())).toMatchObject({ ok: true });
    reconnect(harness);
    await harness.time.advance(minute);
    expect(harness.vendor.coupons.redemption('A-1')).toBeNull();
  });

  it('passes a void on that it knows nothing of, because it may have lost its store', async () => {
    using harness = await startWithCoupon();
    await harness.vendor.coupons.redeem('A-1');
    expect(await harness.voidFromBelow('A-1', newId())).toMatchObject({ ok: true });
    expect(harness.vendor.coupons.redemption('A-1')).toBeNull();
    expect(await harness.voidFromBelow('A-2', newId())).toMatchObject({ ok: true });
    expect(depthOf(harness)).toMatchObject({ delivered: 2, pending: 0 });
  });

  it('creates a coupon from below under its id, and repeats what the upstream said about it', async () => {
    using harness = await start();
    const id = newId();
    const first = await harness.createCouponFromBelow({ code: 'NEW' }, id);
    const [coupon] = harness.vendor.coupons.list();
    expect(first).toMatchObject({ value: { coupon: { id: coupon?.id } } });
    expect(harness.vendor.keyedCoupons.map((each) => each.id)).toEqual([id]);
    // Its stored answer is gone.
    harness.store.idempotency.prune(Number.MAX_SAFE_INTEGER, 100);
    expect(await harness.createCouponFromBelow({ code: 'NEW' }, id)).toMatchObject({
      value: { coupon: { id: coupon?.id } },
    });
    expect(await harness.createCouponFromBelow({ code: 'new' }, newId())).toMatchObject({
      problem: { code: 'coupon_code_taken' },
    });
    expect(harness.vendor.coupons.list()).toHaveLength(1);
  });

  it('reads the coupon whose code it has refused below, because the agent below looks for it', async () => {
    using harness = await startWithCoupon();
    await harness.vendor.coupons.createCoupon({ code: 'NEW', usageLimit: 3 });
    expect(await harness.createCouponFromBelow({ code: 'NEW' }, newId())).toMatchObject({
      problem: { code: 'coupon_code_taken' },
    });
    await harness.time.advance(second);
    expect(harness.store.mirror.byCode('NEW')).toMatchObject({ coupon: { usageLimit: 3 } });
  });

  it('answers an agent below in half of the time that that agent waits', async () => {
    using harness = await startWithCoupon();
    harness.vendor.latencyMs = minute;
    const began = harness.time.monotonic;
    expect(await harness.redeemFromBelow('A-1', { id: newId() })).toMatchObject({ ok: true });
    expect(harness.time.monotonic - began).toBeLessThan(6 * second);
  });
});
