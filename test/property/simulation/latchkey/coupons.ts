import { foldCouponCode, type CouponTerms } from '../../../../src/domain/checkout/coupon.ts';
import type { Cart } from '../../../../src/domain/checkout/quote.ts';
import type { Result } from '../../../../src/domain/problem/problem.ts';
import { productKey } from './authority.ts';
import type { Site } from './site.ts';
import type { LatchkeyWorld } from './world.ts';

const accountId = 'default';
const nobody = { actor: null, requestId: null, idempotency: null };
const forEver = new AbortController().signal;
const hourMs = 3_600_000;

/** A coupon of the seller that all sites redeem. */
export async function addSharedCoupon(world: LatchkeyWorld): Promise<void> {
  const terms = { ...termsOf(world, 'SHARED'), usageLimit: world.random.between(3, 15), endAt: null };
  await world.authority.write('createCoupon', { accountId, terms });
  world.codes.push('SHARED');
}

/** Some requests of callers, and of the seller. */
export async function askForCoupons(world: LatchkeyWorld, site: Site): Promise<void> {
  const { random, troubles } = world;
  if (site.agent.isDead) return;
  for (let asked = random.pick([0, 0, 1, 1, 3]); asked > 0; asked -= 1) {
    const dice = random.fraction();
    if (dice < 0.45) void redeem(world, site, newOrder(world));
    else if (dice < 0.6) void redeem(world, site, anyOrder(world));
    else if (dice < 0.83) void cancel(site, anyOrder(world));
    else if (dice < 0.93) void create(world, site);
    else if (troubles.has('seller')) await sell(world);
  }
}

function newOrder({ random, orders, codes }: LatchkeyWorld): string {
  const order = `order ${orders.size}`;
  const [first = '', ...others] = codes;
  orders.set(order, random.chance(0.6) ? first : random.pick([first, ...others]));
  return order;
}

/** Mostly one of the last orders. */
function anyOrder(world: LatchkeyWorld): string {
  const { random, orders } = world;
  if (orders.size === 0) return newOrder(world);
  const last = orders.size - 1;
  return `order ${random.between(random.chance(0.7) ? Math.max(0, last - 5) : 0, last)}`;
}

async function redeem(world: LatchkeyWorld, site: Site, order: string): Promise<void> {
  const { agent } = site;
  const command = { accountId, order, cart: cartOf(world, order) };
  const hear = site.told.begin(order);
  const answer = await heard(agent.checkoutService.redeem(command, nobody, forEver));
  if (agent.isDead) return;
  if (answer?.ok === false) {
    // Each other refusal leaves the order as it was.
    hear(answer.problem.code === 'coupon_not_redeemable' ? 'none' : null);
  } else {
    hear(answer === null ? 'unsure' : 'redeemed');
  }
}

async function cancel({ agent, told }: Site, order: string): Promise<void> {
  const hear = told.begin(order);
  const answer = await heard(agent.checkoutService.void({ accountId, order }, nobody, forEver));
  if (agent.isDead) return;
  if (answer === null) hear('unsure');
  else hear(answer.ok || answer.problem.code === 'redemption_not_found' ? 'none' : null);
}

async function create(world: LatchkeyWorld, { agent, told }: Site): Promise<void> {
  const { random, codes } = world;
  // Some ask for a code that anybody has asked for.
  const code = random.chance(0.2) ? random.pick(codes as [string, ...string[]]) : `CODE-${codes.length}`;
  if (!codes.includes(code)) codes.push(code);
  const terms = termsOf(world, code);
  const answer = await heard(agent.couponService.create(accountId, terms, nobody, forEver));
  if (answer?.ok === true && !agent.isDead) told.created.set(answer.value.coupon.id, code);
}

/** Null: it failed, as on a full disk. */
async function heard<Value>(answer: Promise<Result<Value>>): Promise<Result<Value> | null> {
  return await answer.catch(() => null);
}

/** The seller redeems, voids and edits at the authority itself. */
async function sell(world: LatchkeyWorld): Promise<void> {
  const { random, authority, codes } = world;
  const dice = random.fraction();
  if (dice < 0.2) {
    const order = newOrder(world);
    const command = { accountId, order: `seller ${order}`, cart: cartOf(world, order) };
    await authority.write('redeemCoupon', command);
  } else if (dice < 0.5) {
    await authority.write('voidRedemption', { accountId, order: anyOrder(world) });
  } else {
    await edit(world, random.pick(codes as [string, ...string[]]));
  }
}

async function edit({ random, authority, deleted }: LatchkeyWorld, code: string): Promise<void> {
  const coupon = authority.machine.transaction.coupons.byCode(accountId, code);
  if (coupon === null) return;
  const { id, ...terms } = coupon;
  const dice = random.fraction();
  if (dice < 0.5) {
    const usageLimit = Math.max(1, (terms.usageLimit ?? 5) + random.pick([-2, 1, 3]));
    await authority.write('updateCoupon', { accountId, id, terms: { ...terms, usageLimit } });
  } else if (dice < 0.8) {
    const discount = { type: 'percent', percentOff: random.between(1, 50) } as const;
    await authority.write('updateCoupon', { accountId, id, terms: { ...terms, discount } });
  } else if (code !== 'SHARED' && random.chance(0.5)) {
    await authority.write('endCoupon', { accountId, id });
  } else if (code !== 'SHARED') {
    const gone = await authority.write('deleteCoupon', { accountId, id });
    if (gone.ok) deleted.add(foldCouponCode(code));
  }
}

function termsOf({ random, clock }: LatchkeyWorld, code: string): CouponTerms {
  const discount = random.chance(0.7)
    ? ({ type: 'percent', percentOff: random.between(1, 50) } as const)
    : ({ type: 'amount', amountOff: random.between(100, 900) } as const);
  const endAt = random.chance(0.2) ? wholeSecond(clock.now()) + random.between(1, 10) * hourMs : null;
  return {
    scope: random.chance(0.3) ? { type: 'single', productKey } : { type: 'multi' },
    discount,
    code,
    startAt: null,
    endAt,
    minimumPurchaseAmount: null,
    usageLimit: random.chance(0.7) ? random.between(1, 6) : null,
    notes: null,
  };
}

/** As a caller sends it. */
function wholeSecond(at: number): number {
  return at - (at % 1_000);
}

/** The cart of an order is the same at each request, but for a few; a few are so long that their quotes fit in no reply. */
function cartOf({ random, orders }: LatchkeyWorld, order: string): Cart {
  const number = Number(order.slice('order '.length));
  const amount = 1_000 + number + (random.chance(0.03) ? 1 : 0);
  const line = { productKey, amount, quantity: 1, collectionIds: [], recurring: false };
  const lines = Array.from({ length: number % 40 === 7 ? 300 : 1 + (number % 3) }, () => line);
  return { code: orders.get(order) ?? '', currency: null, lines };
}
