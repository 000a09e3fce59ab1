import { describe, expect, it } from 'vitest';
import type { OperationResult } from '../../src/domain/sync/push.ts';
import { protocolOf } from '../../src/service/outbox/protocol.ts';
import { chainStore } from '../../src/service/sync/chain-store.ts';
import { readPushReply } from '../../src/upstream/sync-wire.ts';
import { readOperation } from '../../src/wire/sync.ts';
import { buildCart } from '../support/builders/coupon-builders.ts';
import { lostAnswer, type LatchkeyVendor } from '../support/harness/latchkey-vendor.ts';
import { newId } from '../support/harness/sync-server-harness.ts';
import {
  defaultPolicy,
  minute,
  second,
  startPushingHarness,
  type SyncHarness,
} from '../support/harness/sync-harness.ts';

type Pushing = SyncHarness & { latchkey: LatchkeyVendor };

/** An agent that has mirrored a coupon of its upstream, which can be used so many times. */
async function startWithCoupon(usageLimit: number | null = null): Promise<Pushing> {
  const harness = await startPushingHarness(['KEY']);
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

/** No push arrives. */
function cutOff({ latchkey }: Pushing): void {
  latchkey.instead = (what) => (what === 'push' || what === 'known' ? lostAnswer : null);
}

/** Pushes arrive, and their answers are lost. */
function loseAnswers({ latchkey }: Pushing): void {
  latchkey.loses = (what) => (what === 'push' ? lostAnswer : null);
}

function reconnect({ latchkey }: Pushing): void {
  latchkey.instead = () => null;
  latchkey.loses = () => null;
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

  it('whose push was refused after its caller was answered is sent again as provisional', async () => {
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
    expect(harness.latchkey.pushes).toHaveLength(1);
  });

  it('of a cart that is too long for a push is refused', async () => {
    using harness = await startWithCoupon();
    const productKey = 'p'.repeat(255);
    const lines = Array.from({ length: 1_000 }, () => ({ productKey, collectionIds: ['c'.repeat(100)] }));
    expect(await harness.redeem('A-1', buildCart(...lines))).toMatchObject({
      problem: { code: 'body_too_large' },
    });
    expect(harness.redemption('A-1')).toBeNull();
  });

  it('of a long cart gets the quote of the upstream, which does not fit the answer to the push', async () => {
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
    expect(harness.latchkey.asked).toContain('quote');
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
    cutOff(harness);
    await harness.redeem('A-1');
    await harness.redeem('A-2', buildCart({}));
    await harness.void('A-2');
    reconnect(harness);
    await harness.time.advance(minute);
    expect(depthOf(harness)).toMatchObject({ delivered: 1, pending: 0 });
    expect(harness.vendor.coupons.redemption('A-1')).not.toBeNull();
    expect(harness.latchkey.pushes.join('')).not.toContain('A-2');
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
    expect(depthOf(harness)).toMatchObject({ delivered: 1, cancelled: 1, dead: 0 });
  });
});

describe('a new coupon at an agent whose upstream is Latchkey', () => {
  it('gets its real id from the answer to the push', async () => {
    using harness = await startPushingHarness(['KEY']);
    const created = await harness.createCoupon({ code: 'NEW' });
    const [coupon] = harness.vendor.coupons.list();
    expect(created).toMatchObject({ ok: true, value: { coupon: { id: coupon?.id, code: 'NEW' } } });
    expect(harness.vendor.asked).not.toContain('create coupon');
  });

  it('is refused as at the upstream, and leaves nothing', async () => {
    using harness = await startPushingHarness(['KEY']);
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
    using harness = await startPushingHarness(['KEY']);
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
    using harness = await startPushingHarness(['KEY']);
    cutOff(harness);
    await harness.createCoupon({ code: 'NEW' });
    const { id } = operationOf(harness, 'new');
    const data = { epoch: 'e', seq: 1, results: [{ outcome: 'applied', coupon_id: -1 }] };
    const reply = readPushReply({ data }, { seq: 1, ids: [id] });
    if ('fault' in reply) throw new Error(reply.fault);
    const { writer } = harness;
    const recorded = { productId: null, seq: 1, epoch: 'e', policy: defaultPolicy };
    if (reply.value.kind !== 'results') throw new Error('the reply has no results');
    await writer.write('recordPush', { ...recorded, results: reply.value.results });
    expect(depthOf(harness)).toMatchObject({ delivered: 1, in_flight: 0 });
    expect(harness.store.mirror.get(-1)).toMatchObject({ coupon: { id: -1 }, confirmedAt: null });
    const { id: realId } = await harness.vendor.coupons.createCoupon({ code: 'NEW' });
    await harness.within(harness.sync.coupons.list(new AbortController().signal));
    expect(harness.store.mirror.get(-1)).toMatchObject({ coupon: { id: realId } });
  });

  it('is created before the orders that use it, also if the agent was killed before it sent them', async () => {
    using harness = await startPushingHarness(['KEY']);
    await harness.vendor.coupons.createCoupon({});
    await harness.quote();
    await harness.redeem('A-1');
    cutOff(harness);
    harness.sync.limiter.pause();
    await harness.void('A-1');
    await harness.createCoupon({ code: 'NEW' });
    await harness.redeem('A-1', { ...buildCart({}), code: 'NEW' });
    const limits = { operations: 500, bytes: 262_144 };
    await harness.writer.write('planPush', { productId: null, limits });
    reconnect(harness);
    await harness.restart();
    await harness.time.advance(minute);
    expect(depthOf(harness)).toMatchObject({ delivered: 4, dead: 0, pending: 0, in_flight: 0 });
    expect(harness.vendor.coupons.redemption('A-1')?.cart.code).toBe('NEW');
  });

  it('conflicts with another coupon that got its code meanwhile', async () => {
    using harness = await startPushingHarness(['KEY']);
    cutOff(harness);
    await harness.createCoupon({ code: 'NEW' });
    await harness.vendor.coupons.createCoupon({ code: 'NEW', usageLimit: 3 });
    reconnect(harness);
    await harness.time.advance(minute);
    expect(operationOf(harness, 'new')).toMatchObject({ progress: { state: 'conflicted' } });
    expect(harness.store.mirror.get(-1)).toBeNull();
  });
});

describe('after a restore, changes of coupons', () => {
  it('of the agent are asked about, and none counts twice', async () => {
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
    expect(harness.latchkey.asked.filter((what) => what === 'known').length).toBeGreaterThan(0);
  });

  it('of the upstream are sent again, and a redemption that was answered stays valid beyond the limit', async () => {
    using harness = await startWithCoupon(1);
    const { store } = harness.vendor.coupons;
    await harness.redeem('A-1');
    await harness.createCoupon({ code: 'NEW' });
    const [agent] = store.sync.list({ tenant: { accountId: 'default', productKey: null } }, page);
    if (agent === undefined) throw new Error('the agent is unknown');
    // The upstream is put back to before the redemption.
    store.redemptions.remove('default', 'A-1');
    for (const { id, code } of harness.vendor.coupons.list()) if (code === 'NEW') store.coupons.remove(id);
    store.sync.remove(agent.number);
    store.sync.pruneOutcomes(Number.MAX_SAFE_INTEGER, 100);
    await harness.vendor.coupons.redeem('B-1');
    await harness.redeem('A-2');
    await harness.time.advance(2 * minute);
    expect(harness.vendor.coupons.redemption('A-1')).toMatchObject({ overLimit: true });
    expect(harness.redemption('A-1')).toMatchObject({ overLimit: true });
    const made = harness.vendor.coupons.list().find(({ code }) => code === 'NEW');
    expect(harness.store.mirror.get(-1)).toMatchObject({ coupon: { id: made?.id } });
    expect(depthOf(harness)).toMatchObject({ pending: 0, in_flight: 0, dead: 0, uncertain: 0 });
  });

  for (const hasLost of [true, false]) {
    const what = hasLost ? 'are sent again' : 'count once';
    it(`of an upstream that ${hasLost ? 'has lost' : 'still has'} them ${what}, although none follows`, async () => {
      using harness = await startPushingHarness(['KEY']);
      const { coupons } = harness.vendor;
      const { store } = coupons;
      store.settings.set('sync_epoch', harness.latchkey.epoch);
      await coupons.createCoupon({ usageLimit: 5 });
      await harness.quote();
      for (const order of ['A-1', 'A-2']) await harness.redeem(order);
      const [agent] = store.sync.list({ tenant: { accountId: 'default', productKey: null } }, page);
      if (agent === undefined) throw new Error('the agent is unknown');
      if (hasLost) {
        for (const order of ['A-1', 'A-2']) store.redemptions.remove('default', order);
        store.sync.remove(agent.number);
        store.sync.pruneOutcomes(Number.MAX_SAFE_INTEGER, 100);
      }
      harness.latchkey.epoch = '0123456789abcdef-2';
      store.settings.set('sync_epoch', harness.latchkey.epoch);
      await harness.time.advance(2 * minute);
      for (const order of ['A-1', 'A-2']) expect(coupons.redemption(order)).not.toBeNull();
      const [coupon] = coupons.list();
      expect(store.redemptions.countOf('default', coupon?.id ?? 0)).toBe(2);
      expect(depthOf(harness)).toMatchObject({ delivered: 2, pending: 0, in_flight: 0 });
      const pushes = harness.latchkey.pushes.length;
      await harness.time.advance(5 * minute);
      expect(harness.latchkey.pushes).toHaveLength(pushes);
    });
  }

  /** The upstream is put back to before all pushes, without these coupons and redemptions. */
  function restoreUpstream(
    { latchkey, vendor: { coupons } }: Pushing,
    codes: string[],
    orders: string[],
  ): void {
    coupons.lose(codes, orders);
    latchkey.epoch = '0123456789abcdef-2';
    coupons.store.settings.set('sync_epoch', latchkey.epoch);
  }

  it('of a restored upstream may be within a limit that they were beyond', async () => {
    using harness = await startPushingHarness(['KEY']);
    const { coupons } = harness.vendor;
    coupons.store.settings.set('sync_epoch', harness.latchkey.epoch);
    await coupons.createCoupon({ usageLimit: 1 });
    await harness.quote();
    cutOff(harness);
    await harness.redeem('A-1');
    await coupons.redeem('B-1');
    reconnect(harness);
    await harness.time.advance(minute);
    expect(harness.redemption('A-1')).toMatchObject({ overLimit: true });
    restoreUpstream(harness, [], ['A-1', 'B-1']);
    await harness.time.advance(2 * minute);
    expect(coupons.redemption('A-1')).not.toHaveProperty('overLimit');
    expect(harness.redemption('A-1')).not.toHaveProperty('overLimit');
  });

  it('of a restored upstream keep redemptions with their coupons, although each gets the former id of another', async () => {
    using harness = await startPushingHarness(['KEY']);
    const { coupons } = harness.vendor;
    coupons.store.settings.set('sync_epoch', harness.latchkey.epoch);
    const codes = ['FIRST', 'SECOND', 'THIRD'];
    for (const code of codes) {
      await harness.createCoupon({ code });
      await harness.redeem(`order of ${code}`, { ...buildCart({}), code });
    }
    const orders = codes.map((code) => `order of ${code}`);
    restoreUpstream(harness, codes, orders);
    await coupons.createCoupon({ code: 'OTHER' });
    await harness.time.advance(2 * minute);
    for (const order of orders) {
      const { couponId } = coupons.redemption(order) ?? {};
      expect(couponId).toBeGreaterThan(0);
      expect(harness.redemption(order)).toMatchObject({ couponId });
    }
    const ids = coupons.list().flatMap(({ id, code }) => (codes.includes(code) ? [id] : []));
    expect([-1, -2, -3].map((id) => harness.store.mirror.get(id)?.coupon.id)).toEqual(ids);
  });
});

const page = { limit: 10, offset: 0 };

describe('when a person chooses the plain protocol', () => {
  it('redemptions end here, and coupons are created the plain way', async () => {
    using harness = await startWithCoupon(5);
    cutOff(harness);
    await harness.redeem('A-1');
    await harness.redeem('A-2');
    await harness.createCoupon({ code: 'NEW' });
    await harness.sync.chooseProtocol('plain', { actor: null, requestId: null, idempotency: null });
    reconnect(harness);
    await harness.time.advance(5 * minute);
    expect(protocolOf(harness.store)).toBe('plain');
    expect(depthOf(harness)).toMatchObject({ inferred: 1, cancelled: 1, delivered: 1, pending: 0 });
    expect(harness.redemption('A-1')).not.toBeNull();
    expect(harness.vendor.coupons.redemption('A-1')).toBeNull();
    expect(harness.vendor.coupons.list()).toHaveLength(2);
    expect(await harness.redeem('A-3')).toMatchObject({ ok: true });
    expect(await harness.void('A-3')).toMatchObject({ ok: true });
    expect(harness.vendor.coupons.redemption('A-3')).toBeNull();
  });
});

describe('an agent in the middle of a chain', () => {
  const options = { actor: 'agent', requestId: null, idempotency: null };
  let agents = 0;

  /** What agents below push, in a harness whose agent is in the middle. */
  function below(harness: Pushing): (operations: readonly object[]) => Promise<readonly OperationResult[]> {
    agents += 1;
    const agentId = agents.toString(16).padStart(32, '0');
    let seq = 0;
    const store = chainStore({
      reader: harness.store,
      writer: harness.writer,
      productIds: () => ['press'],
      settings: () => ({ freshness, maxPending: 1_000, timeoutMs: 10 * second }),
      hasCoupons: () => true,
      coupons: harness.sync.coupons,
      deliveries: harness.sync.push,
      wake: () => harness.sync.push.wake(),
      followNew: () => undefined,
    });
    return async (sent) => {
      seq += 1;
      const operations = sent.map((each) =>
        readOperation({ id: newId(), at: '2026-01-01T00:00:00Z', ...each }),
      );
      const command = { agentId, tenant, seq, digest: JSON.stringify(sent), operations };
      const pushed = await harness.within(Promise.resolve(store.push(command, options)));
      if (!pushed.ok) throw new Error(pushed.problem.detail);
      return pushed.value.results;
    };
  }

  const cart = { code: 'SPRING', items: [{ product_key: 'press', amount: 1000 }] };
  const redeem = { kind: 'redeem', cart, discounts: [200] };

  it('asks the upstream about a redemption from below before it answers', async () => {
    using harness = await startWithCoupon(1);
    const [one, other] = [below(harness), below(harness)];
    expect(await one([{ ...redeem, order: 'A-1' }])).toEqual([{ outcome: 'applied' }]);
    expect(harness.vendor.coupons.redemption('A-1')).not.toBeNull();
    const refused = { outcome: 'refused', code: 'coupon_not_redeemable', reasons: ['usage_limit_reached'] };
    expect(await other([{ ...redeem, order: 'B-1' }])).toEqual([refused]);
    expect(harness.redemption('B-1')).toBeNull();
    expect(await one([{ kind: 'void', order: 'A-1' }])).toEqual([{ outcome: 'applied' }]);
    await harness.time.advance(second);
    expect(harness.vendor.coupons.redemption('A-1')).toBeNull();
    expect(await other([{ ...redeem, order: 'B-2' }])).toEqual([{ outcome: 'applied' }]);
  });

  it('takes coupons and provisional redemptions from below while the upstream is away', async () => {
    using harness = await startWithCoupon(1);
    const push = below(harness);
    cutOff(harness);
    const coupon = { code: 'NEW', coupon_type: 'multi', percent_off: 10 };
    expect(
      await push([
        { kind: 'create_coupon', coupon },
        { ...redeem, order: 'A-1' },
        { ...redeem, order: 'A-2', provisional: true },
        { kind: 'void', order: 'A-3' },
      ]),
    ).toEqual([
      { outcome: 'applied' },
      { outcome: 'applied' },
      { outcome: 'applied' },
      { outcome: 'refused', code: 'redemption_not_found' },
    ]);
    reconnect(harness);
    await harness.time.advance(minute);
    expect(harness.vendor.coupons.list().map(({ code }) => code)).toEqual(['SPRING', 'NEW']);
    expect(harness.vendor.coupons.redemption('A-1')).not.toBeNull();
    expect(harness.vendor.coupons.redemption('A-2')).toMatchObject({ overLimit: true });
    expect(depthOf(harness)).toMatchObject({ delivered: 3, pending: 0, in_flight: 0, dead: 0 });
  });
});

const tenant = { accountId: 'default', productKey: null };
const freshness = { freshMs: 1_440 * minute, staleMs: 2_880 * minute, graceMs: 5_760 * minute };
