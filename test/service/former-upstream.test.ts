import { expect, it } from 'vitest';
import type { Coupon } from '../../src/domain/checkout/coupon.ts';
import { mirroredSince } from '../../src/service/agent/mirror.ts';
import { AgentProducts, storedProducts } from '../../src/service/agent/products.ts';
import { createAgent, lost, valueOf, type AgentHarness } from '../support/harness/service-harness.ts';
import { buildTerms } from '../support/builders/coupon-builders.ts';

const store = 'https://store.example';
const other = 'https://other.example';
const account = 'default';

/** Starts the agent with this upstream. */
async function bind(agent: AgentHarness, baseUrl: string): Promise<void> {
  const configured = [{ productKey: 'press', secretDigest: 'digest-of-press' }];
  const products = new AgentProducts(storedProducts(agent.store.settings), configured).list;
  valueOf(await agent.writer.write('bindUpstream', { baseUrl, products }));
  agent.check();
}

async function given(): Promise<AgentHarness> {
  const agent = await createAgent({ uses: 5 });
  await bind(agent, store);
  return agent;
}

function coupon(id: number, code: string): Coupon {
  return { ...buildTerms({ code, usageLimit: 1 }), id };
}

/** The upstream shows its whole list of coupons. */
async function list(agent: AgentHarness, ...coupons: readonly Coupon[]): Promise<void> {
  const command = { coupons, confirmedAt: agent.now, extent: 'whole' } as const;
  valueOf(await agent.writer.write('mirrorCoupons', command));
}

async function redeem(agent: AgentHarness, order: string, code: string): Promise<boolean> {
  const line = { productKey: 'press', amount: 1000, quantity: 1, recurring: false, collectionIds: [] };
  const cart = { code, currency: null, lines: [line] };
  const command = { accountId: account, order, cart };
  return (await agent.writer.write('redeemMirroredCoupon', command)).ok;
}

function codes(agent: AgentHarness): string[] {
  return agent.store.mirror.list({ limit: 100, offset: 0 }).map(({ coupon: { code } }) => code);
}

it('an agent does not mix the coupons of the former and the new upstream', async () => {
  await using agent = await given();
  await list(agent, coupon(1, 'FIRST'));
  expect(mirroredSince(agent.store)).toBe(agent.now);
  await bind(agent, other);
  expect(codes(agent)).toEqual([]);
  expect(mirroredSince(agent.store)).toBeNull();
  expect(await redeem(agent, 'order-1', 'FIRST')).toBe(false);
});

it('a coupon that has the id of a coupon of the former upstream has its own redemptions', async () => {
  await using agent = await given();
  await list(agent, coupon(1, 'FIRST'));
  expect(await redeem(agent, 'order-1', 'FIRST')).toBe(true);
  await bind(agent, other);
  await list(agent, coupon(1, 'SECOND'));
  expect(await redeem(agent, 'order-2', 'SECOND')).toBe(true);
  expect(agent.store.redemptions.countOf(account, 1)).toBe(1);
  // The order still has its redemption.
  expect(agent.store.redemptions.get(account, 'order-1')?.cart.code).toBe('FIRST');
});

it('a coupon with the same id and code at the new address of the upstream keeps its redemptions', async () => {
  await using agent = await given();
  await list(agent, coupon(1, 'FIRST'));
  expect(await redeem(agent, 'order-1', 'FIRST')).toBe(true);
  await bind(agent, other);
  await list(agent, coupon(1, 'FIRST'));
  expect(agent.store.redemptions.countOf(account, 1)).toBe(1);
  expect(await redeem(agent, 'order-2', 'FIRST')).toBe(false);
});

it('redemptions are kept while an upstream in between has no coupons', async () => {
  await using agent = await given();
  await list(agent, coupon(1, 'FIRST'));
  expect(await redeem(agent, 'order-1', 'FIRST')).toBe(true);
  await bind(agent, 'https://mistyped.example');
  await bind(agent, store);
  await list(agent, coupon(1, 'FIRST'));
  expect(agent.store.redemptions.countOf(account, 1)).toBe(1);
});

it('a provisional id of a coupon of the former upstream does not mean a coupon of the new one', async () => {
  await using agent = await given();
  const terms = buildTerms({ code: 'MINE' });
  const command = { terms, isSentNow: true, maxPending: 10 };
  const queued = valueOf(await agent.writer.write('queueCoupon', command));
  const { policy, now } = agent;
  const created = { ...terms, id: 7 };
  const outcome = { outcome: 'applied', value: created, confirmedAt: now, isCached: false } as const;
  const { operationId } = queued;
  valueOf(await agent.writer.write('recordCouponResponse', { operationId, outcome, caller: null, policy }));
  expect(agent.store.mirror.get(queued.coupon.id)?.coupon).toEqual(created);
  await bind(agent, other);
  await list(agent, coupon(7, 'OTHER'));
  expect(agent.store.mirror.get(queued.coupon.id)).toBeNull();
  // It is the same upstream at a new address: the id means the same coupon again.
  await bind(agent, store);
  await list(agent, created);
  expect(agent.store.mirror.get(queued.coupon.id)?.coupon).toEqual(created);
});

it('a coupon that was never sent to the former upstream is sent to the new one', async () => {
  await using agent = await given();
  const command = { terms: buildTerms({ code: 'WAITS' }), isSentNow: false, maxPending: 10 };
  const { operationId, coupon: waiting } = valueOf(await agent.writer.write('queueCoupon', command));
  await bind(agent, other);
  expect(codes(agent)).toEqual(['WAITS']);
  expect(agent.store.mirror.get(waiting.id)).not.toBeNull();
  expect(agent.stateOf(operationId)).toBe('pending');
});

it('a coupon that may have been created at the former upstream waits for a person', async () => {
  await using agent = await given();
  const command = { terms: buildTerms({ code: 'DOUBT' }), isSentNow: true, maxPending: 10 };
  const { operationId } = valueOf(await agent.writer.write('queueCoupon', command));
  const { policy } = agent;
  await agent.writer.write('recordCouponResponse', { operationId, outcome: lost, caller: null, policy });
  await bind(agent, other);
  await list(agent);
  expect(agent.stateOf(operationId)).toBe('held');
  expect(codes(agent)).toEqual(['DOUBT']);
});

it('a coupon that a person confirmed at the former upstream is not a coupon of the new one', async () => {
  await using agent = await given();
  const command = { terms: buildTerms({ code: 'DOUBT' }), isSentNow: true, maxPending: 10 };
  const { operationId } = valueOf(await agent.writer.write('queueCoupon', command));
  const { policy } = agent;
  await agent.writer.write('recordCouponResponse', { operationId, outcome: lost, caller: null, policy });
  valueOf(await agent.writer.write('decideOperation', { operationId, decision: 'confirm' }));
  expect(codes(agent)).toEqual(['DOUBT']);
  await bind(agent, other);
  expect(codes(agent)).toEqual([]);
});

/** The upstream, a Latchkey, is restored, or another one takes its place. */
async function replace(agent: AgentHarness): Promise<void> {
  await agent.read({ ...agent.says(5), epoch: '0123456789abcdef'.repeat(2) });
  await agent.read({ ...agent.says(5), epoch: `0123456789abcdef${'1'.repeat(16)}` });
}

it('coupons of an upstream that was restored are read again before they are answered', async () => {
  await using agent = await given();
  await list(agent, coupon(1, 'FIRST'));
  await replace(agent);
  expect(mirroredSince(agent.store)).toBe(0);
  expect(agent.store.mirror.byCode('FIRST')?.confirmedAt).toBe(0);
  await list(agent, coupon(1, 'FIRST'));
  expect(agent.store.mirror.byCode('FIRST')?.confirmedAt).toBe(agent.now);
});

it('a coupon of an upstream that was restored keeps the redemptions of the same id and code', async () => {
  await using agent = await given();
  await list(agent, coupon(1, 'FIRST'), coupon(2, 'OTHER'));
  expect(await redeem(agent, 'order-1', 'FIRST')).toBe(true);
  expect(await redeem(agent, 'order-2', 'OTHER')).toBe(true);
  await replace(agent);
  await list(agent, coupon(1, 'FIRST'), coupon(2, 'SECOND'));
  expect(await redeem(agent, 'order-3', 'FIRST')).toBe(false);
  expect(await redeem(agent, 'order-4', 'SECOND')).toBe(true);
});

it('a coupon whose code changes at the same upstream keeps its redemptions', async () => {
  await using agent = await given();
  await list(agent, coupon(1, 'FIRST'));
  expect(await redeem(agent, 'order-1', 'FIRST')).toBe(true);
  await list(agent, coupon(1, 'RENAMED'));
  expect(await redeem(agent, 'order-2', 'RENAMED')).toBe(false);
});
