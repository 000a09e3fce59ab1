import { foldCouponCode } from '../../../../src/domain/checkout/coupon.ts';
import { isLicenseKind } from '../../../../src/domain/outbox/operation.ts';
import type { Machine } from '../machine.ts';
import type { LatchkeyWorld, OperationRow, Site } from './world.ts';

/** Throws at the first promise about coupons that does not hold at this moment. */
export function checkCouponStep(world: LatchkeyWorld): void {
  const { authority, sites } = world;
  const [broken] = authority.book.broken;
  if (broken !== undefined) throw new Error(broken);
  checkBooked(world);
  for (const site of sites) checkTold(site);
}

/** Throws at the first promise about coupons that does not hold after all troubles have ended. */
export function checkCouponsAtRest(world: LatchkeyWorld): void {
  checkIds(world);
  for (const site of world.sites) {
    const operations = site.operations().filter(({ kind }) => !isLicenseKind(kind));
    for (const operation of operations) checkCouponOperation(world, operation);
    checkOrders(world, site, operations);
    checkMirror(world, site);
    checkCreated(world, site);
  }
}

/** `discount`: in cents, as callers were answered. */
type Redeemed = { order: string; couponId: number; overLimit: number; discount: number };

function redeemedAt({ database }: Machine): Redeemed[] {
  return database
    .prepare(
      `SELECT order_id AS "order", coupon_id AS couponId, over_limit AS overLimit, quote ->> 'discount' AS discount
       FROM redemption ORDER BY id`,
    )
    .all() as Redeemed[];
}

/** The authority has the redemptions that its answers make, and has counted each once. */
function checkBooked({ authority: { machine, book } }: LatchkeyWorld): void {
  const stored = new Map(redeemedAt(machine).map((each) => [each.order, each]));
  for (const order of new Set([...stored.keys(), ...book.open.keys()])) {
    const [is, due] = [stored.get(order), book.open.get(order)];
    if (is === undefined || due === undefined)
      throw new Error(
        `booked: ${order} counts: ${is !== undefined}; its operations make ${due !== undefined}`,
      );
    if ((is.overLimit === 1) !== due.overLimit)
      throw new Error(`booked: ${order} was answered over_limit: ${due.overLimit}, and is not stored so`);
  }
  const miscounted = machine.database.prepare(
    `SELECT coupon_id || ' counts ' || count AS it FROM redemption_count AS counted WHERE count <>
       (SELECT count(*) FROM redemption WHERE redemption.coupon_id = counted.coupon_id)`,
  );
  const wrong = miscounted.get();
  if (wrong !== undefined)
    throw new Error(`count: the coupon ${String(wrong['it'])} uses, and has another number of redemptions`);
}

/** What callers were answered about an order stays so. */
function checkTold({ machine, told, place }: Site): void {
  const stored = new Set(redeemedAt(machine).map(({ order }) => order));
  for (const { order, known } of told.orders()) {
    if (known !== 'unsure' && stored.has(order) !== (known === 'redeemed'))
      throw new Error(
        `lost: ${place}: ${order} was answered as ${known}, and is stored: ${stored.has(order)}`,
      );
  }
}

/** Each operation that was applied is in an outbox, under the id that it was sent with. */
function checkIds({ authority, sites, troubles }: LatchkeyWorld): void {
  if (doubling.some((name) => troubles.has(name))) return;
  const made = new Set(sites.flatMap((site) => site.operations().map(({ id }) => id)));
  for (const id of authority.book.applied.keys())
    if (!made.has(id)) throw new Error(`coupons: nobody has made the operation ${id}`);
}

function checkCouponOperation(world: LatchkeyWorld, operation: OperationRow): void {
  const { id, kind, subject, state, attempts, lastError } = operation;
  const fault = faultOf(operation, world.authority.book.applied.has(id));
  if (fault === null || isExcused(world, operation)) return;
  const what = `${kind} ${id} of ${subject} is ${state} after ${attempts} attempts`;
  throw new Error(`coupons: ${what}: ${fault}${lastError === null ? '' : ` (${lastError})`}`);
}

function faultOf({ state }: OperationRow, isApplied: boolean): string | null {
  switch (state) {
    case 'delivered':
      return isApplied ? null : 'it never arrived';
    case 'dead':
    case 'cancelled':
    case 'dropped':
    case 'conflicted':
      return isApplied ? 'it was applied' : null;
    case 'inferred':
    case 'uncertain':
      return 'no doubt is due';
    case 'pending':
    case 'in_flight':
      return 'it still waits';
    default:
      return state satisfies never;
  }
}

/** Troubles after which the store may not know what another life of it has sent. */
const doubling = ['agent_restore', 'rollback', 'copy', 'authority_restore'] as const;

function isExcused({ network, doubted, troubles }: LatchkeyWorld, operation: OperationRow): boolean {
  const { id, kind, state, held, attempts, lastError } = operation;
  if (state === 'pending' || state === 'in_flight' || (state === 'uncertain' && held === 0)) return false;
  // The plain protocol has a simulation of its own, and tells the upstream of no redemption.
  if (network.sentPlain.has(id) || doubted.has(id) || lastError?.endsWith('it stays here') === true)
    return true;
  // A copy may have got another answer to the same operation.
  const isUndone = state === 'cancelled' && (attempts === 0 || kind === 'void' || troubles.has('copy'));
  return (isUndone || state === 'inferred' || held === 1) && doubling.some((name) => troubles.has(name));
}

/** An order that a site has redeemed counts at the authority, and no other order does. */
function checkOrders(world: LatchkeyWorld, site: Site, operations: readonly OperationRow[]): void {
  const here = new Map(redeemedAt(site.machine).map((each) => [each.order, each]));
  const there = new Map(redeemedAt(world.authority.machine).map((each) => [each.order, each]));
  for (const order of new Set([...here.keys(), ...there.keys()])) {
    const own = operations.filter(({ subject }) => subject === order);
    if (world.keptAtSites.has(order) || own.some((each) => isExcused(world, each))) continue;
    const code = world.authority.book.open.get(order)?.code;
    // Another coupon with the code of a deleted one has another id.
    if (code !== undefined && world.deleted.has(code)) continue;
    const isCreatedHere = operations.some(
      ({ kind, subject, state }) => kind === 'create_coupon' && subject === code && state === 'delivered',
    );
    const fault = faultOfOrder(world, { order, own, isCreatedHere }, [here.get(order), there.get(order)]);
    const states = own.map(({ kind, state }) => `${kind} ${state}`).join(', ');
    if (fault !== null) throw new Error(`at rest: ${site.place}: ${order} ${fault} (${states})`);
  }
}

function faultOfOrder(
  world: LatchkeyWorld,
  { order, own, isCreatedHere }: { order: string; own: readonly OperationRow[]; isCreatedHere: boolean },
  [here, there]: readonly [Redeemed | undefined, Redeemed | undefined],
): string | null {
  const { book } = world.authority;
  const isOwn = (by: string | null | undefined): boolean => own.some(({ id }) => id === by);
  if (here === undefined) return isOwn(book.open.get(order)?.by) ? 'was not redeemed, and counts' : null;
  // A person decides about a redemption that was refused after its caller was answered.
  if (own.findLast(({ kind }) => kind === 'redeem')?.state === 'dead') return null;
  if (there === undefined) {
    const isVoidedElsewhere = book.voided.has(order) && !isOwn(book.voided.get(order));
    return isVoidedElsewhere ? null : 'was redeemed, and does not count';
  }
  const isTold = isOwn(book.open.get(order)?.by);
  if (isTold && here.overLimit !== there.overLimit)
    return `is over_limit ${here.overLimit}; it is ${there.overLimit}`;
  const isNoted = own.some(({ lastError }) => lastError?.startsWith('the upstream takes off') === true);
  if (isTold && !isNoted && here.discount !== there.discount)
    return `takes ${here.discount} cents off; it takes ${there.discount}`;
  // A restored authority may give a coupon another id, which the site learns at once that has created it.
  const { restores } = world.authority;
  const isFollowed = restores === 0 || (restores === 1 && isCreatedHere);
  return here.couponId === there.couponId || !isFollowed || here.couponId < 0
    ? null
    : `has redeemed the coupon ${here.couponId}; it was ${there.couponId}`;
}

const terms = `id, code, scope, product_key, percent_off, amount_off, end_at / 1000 AS ends_at,
  minimum_purchase_amount, usage_limit, notes`;

/** The mirror has the coupons of the authority, and no others but those that wait for a person. */
function checkMirror({ authority }: LatchkeyWorld, { machine, place }: Site): void {
  const { database } = machine;
  const stored = authority.machine.database.prepare(`SELECT ${terms} FROM coupon ORDER BY id`).all();
  const mirrored = database.prepare(
    `SELECT ${terms} FROM mirrored_coupon WHERE id > 0 OR NOT EXISTS (
       SELECT 1 FROM outbox WHERE held = 1 AND kind = 'create_coupon' AND payload ->> 'id' = mirrored_coupon.id
     ) ORDER BY id`,
  );
  const [seen, is] = [mirrored.all(), stored].map((rows) => rows.map((row) => JSON.stringify(row)));
  const missing = is?.find((row) => seen?.includes(row) !== true);
  const other = seen?.find((row) => is?.includes(row) !== true);
  if (missing !== undefined || other !== undefined)
    throw new Error(`mirror: ${place}: it has ${other}, and the authority has ${missing}`);
}

/** A coupon that callers were answered exists, under the id that they were answered. */
function checkCreated({ authority, network, deleted }: LatchkeyWorld, { machine, told, place }: Site): void {
  const made = machine.database.prepare(
    `SELECT id, state FROM outbox WHERE kind = 'create_coupon' AND payload ->> 'id' = ?`,
  );
  for (const [id, code] of told.created) {
    // A restored authority may give a coupon another id; the provisional id stays valid.
    const isRenumbered = id > 0 && authority.restores > 0;
    const { id: operation = '', state = '' } = made.get(id) ?? {};
    const isForPerson = state === 'conflicted' || state === 'dead' || state === 'uncertain';
    // What an authority lost that was sent by the plain protocol cannot be sent again.
    const isLost = authority.restores > 0 && network.sentPlain.has(String(operation));
    if (isRenumbered || isForPerson || isLost || deleted.has(foldCouponCode(code))) continue;
    const seen = machine.transaction.mirror.get(id)?.coupon ?? null;
    const is = seen === null ? null : authority.machine.transaction.coupons.get('default', seen.id);
    if (seen?.code !== code || is?.code !== code)
      throw new Error(
        `created: ${place}: ${code} was answered as ${id}, which is ${seen?.code} here and ${is?.code} there`,
      );
  }
}
