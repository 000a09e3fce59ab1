import { foldCouponCode } from '../../../../src/domain/checkout/coupon.ts';
import { isLicenseKind } from '../../../../src/domain/outbox/operation.ts';
import type { Machine } from '../machine.ts';
import { isOpenAbove, operationAbove, undecidable, type OperationRow, type Site } from './site.ts';
import type { LatchkeyWorld } from './world.ts';

/** Throws at the first promise about coupons that does not hold at this moment. */
export function checkCouponStep({ sites }: LatchkeyWorld): void {
  for (const site of sites) checkTold(site);
}

/** Throws at the first promise about coupons that does not hold after all troubles have ended. */
export function checkCouponsAtRest(world: LatchkeyWorld): void {
  for (const site of world.sites) {
    const operations = site.operations().filter(({ kind }) => !isLicenseKind(kind));
    for (const operation of operations) checkCouponOperation(world, site, operation, operations);
    checkOrders(world, site, operations);
    checkMirror(world, site);
    checkCreated(world, site);
  }
}

/**
 * Whether an order waits for its coupon, whose creation waits for a person: the redemption, and what comes after it, such as its
 * void.
 */
export function waitsForCoupon(
  { orders }: Pick<LatchkeyWorld, 'orders'>,
  operations: readonly OperationRow[],
  { subject }: OperationRow,
): boolean {
  const code = orders.get(subject);
  if (code === undefined) return false;
  const head = operations.find((each) => each.subject === subject && isOpen(each));
  if (head?.kind !== 'redeem' || head.lastError?.includes('unknown_code') !== true) return false;
  const coupon = foldCouponCode(code);
  return operations.some(
    ({ kind, subject: about, held }) => kind === 'create_coupon' && about === coupon && held === 1,
  );
}

/**
 * An operation as the agent in the middle has taken it from below. A redemption that was cancelled there is sent on under another
 * id when it comes again (src/sync/BETWEEN-LATCHKEYS.md, Chains).
 */
function takenAbove(sites: readonly Site[], { id, kind, subject }: OperationRow): readonly OperationRow[] {
  const above = operationAbove(sites, id);
  if (above === undefined) return [];
  if (kind !== 'redeem' || above.state !== 'cancelled') return [above];
  const later = laterThan(id, operationsAbove(sites));
  return [above, ...later.filter((each) => each.kind === 'redeem' && each.subject === subject)];
}

/** Whether an operation waits at the agent in the middle, for a person at last: the check of that agent says whether it may. */
function isUnfinishedAbove(sites: readonly Site[], operation: OperationRow): boolean {
  return takenAbove(sites, operation).some((each) => each.held === 1 || isOpen(each));
}

/** Whether an operation waits for its turn or for a response, and for no person. */
export function isOpen({ state, held }: OperationRow): boolean {
  return (state === 'pending' || state === 'in_flight' || state === 'uncertain') && held === 0;
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

/** What callers were answered about an order stays so, until a person drops the redemption. */
function checkTold(site: Site): void {
  const { machine, told, isMiddle, place } = site;
  // Agents below redeem and void the same orders.
  if (isMiddle) return;
  const stored = new Set(redeemedAt(machine).map(({ order }) => order));
  const operations = site.operations();
  for (const { order, known } of told.orders()) {
    const last = operations.findLast(({ subject }) => subject === order);
    const isDropped = last?.kind === 'redeem' && last.state === 'dropped';
    if (known !== 'unsure' && stored.has(order) !== (known === 'redeemed' && !isDropped))
      throw new Error(
        `lost: ${place}: ${order} was answered as ${known}, and is stored: ${stored.has(order)}`,
      );
  }
}

function checkCouponOperation(
  world: LatchkeyWorld,
  site: Site,
  operation: OperationRow,
  operations: readonly OperationRow[],
): void {
  const { id, kind, subject, state, attempts, lastError } = operation;
  const fault = faultOf(operation, isBooked(world, site, operation, operations));
  if (fault === null || isExcused(world, operation, operations) || isFoundInList(world, site, operation))
    return;
  const what = `${kind} ${id} of ${subject} is ${state} after ${attempts} attempts`;
  throw new Error(`coupons: ${what}: ${fault}${lastError === null ? '' : ` (${lastError})`}`);
}

/** Whether it was carried out, or an operation of another agent about the same order was. */
function isBooked(
  world: LatchkeyWorld,
  site: Site,
  operation: OperationRow,
  operations: readonly OperationRow[],
): boolean {
  const { authority, sites, troubles } = world;
  const { books } = authority;
  const { id, kind, subject, state } = operation;
  const about = books.about('redemption', subject);
  // The agent in the middle voids what it has refused to the agent below.
  const after = about[about.findIndex((line) => line.operation === id) + 1];
  if (state === 'cancelled' && kind === 'redeem' && after?.change === -1) return false;
  if (books.of(id).length > 0) return true;
  if (state === 'delivered' && isOpenAbove(sites, id)) return true;
  if (state !== 'delivered' || kind === 'create_coupon') return false;
  if (kind === 'redeem') {
    // An upstream that was restored or put back does not get a redemption again that was voided since.
    const later = [...laterThan(id, operations), ...laterThan(id, operationsAbove(sites))];
    const isLost = troubles.has('authority_restore') || isLostAbove(world, site, id);
    const isVoided = isLost && later.some((each) => isVoidOf(each, subject));
    return isVoided || about.some(({ change }) => change === 1);
  }
  // There was nothing to void: what counts now was redeemed later, or at another agent.
  const last = about.at(-1);
  const before = operations.slice(0, operations.indexOf(operation));
  return (
    last?.change !== 1 || !before.some((each) => each.id === last.operation && !isJudgedAgain(world, each))
  );
}

function operationsAbove(sites: readonly Site[]): readonly OperationRow[] {
  return sites.find(({ isMiddle }) => isMiddle)?.operations() ?? [];
}

/** The operations after one with an id; none if there is no such operation. */
function laterThan(id: string, operations: readonly OperationRow[]): readonly OperationRow[] {
  const index = operations.findIndex((each) => each.id === id);
  return index === -1 ? [] : operations.slice(index + 1);
}

/** Whether the agent in the middle has taken an operation from below, and lost it with its store. */
function isLostAbove(world: LatchkeyWorld, { network }: Site, id: string): boolean {
  const { sites, networks, troubles } = world;
  const isBelow = network !== networks[0];
  return isBelow && losing.some((name) => troubles.has(name)) && operationAbove(sites, id) === undefined;
}

/** A late copy of a refused request is judged again, and so is that of a copied agent (src/sync/LIMITS.md, Known gaps). */
function isJudgedAgain({ networks, troubles }: LatchkeyWorld, { id, kind, state }: OperationRow): boolean {
  if (kind !== 'redeem') return false;
  const isLate = state === 'cancelled' && networks.some(({ takenLate }) => takenLate.has(id));
  return isLate || (troubles.has('copy') && networks.some(({ judgedAgain }) => judgedAgain.has(id)));
}

function isVoidOf({ kind, subject }: OperationRow, order: string): boolean {
  return kind === 'void' && subject === order;
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

/** Troubles after which an agent does not know what it has taken from below. */
const losing = ['agent_restore', 'lost_state', 'rollback'] as const;

/**
 * The agent in the middle has lost the creation, and calls its code taken: the list shows the coupon, and not who has created it
 * (src/sync/BETWEEN-LATCHKEYS.md, Redemptions and coupons).
 */
function isFoundInList(world: LatchkeyWorld, site: Site, { id, kind, state }: OperationRow): boolean {
  return kind === 'create_coupon' && state === 'inferred' && isLostAbove(world, site, id);
}

function isExcused(
  world: LatchkeyWorld,
  operation: OperationRow,
  operations: readonly OperationRow[],
): boolean {
  const { decided, troubles, sites } = world;
  const { id, kind, subject, state, held, attempts, lastError } = operation;
  if (isOpen(operation)) return waitsForCoupon(world, operations, operation);
  const own = operations.filter((each) => each.subject === subject);
  if (own.some((each) => each.state === 'delivered' && isUnfinishedAbove(sites, each))) return true;
  if (decided.has(id) || undecidable.test(lastError ?? '')) return true;
  // Callers of two agents have sent different carts for an order.
  if (state === 'dead' && lastError?.includes('order_reused') === true) return true;
  if (isJudgedAgain(world, operation)) return true;
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
    if (own.some((each) => isExcused(world, each, operations))) continue;
    const code = foldCouponCode(world.orders.get(order) ?? '');
    // Another coupon with the code of a deleted one has another id.
    if (world.deleted.has(code)) continue;
    const fault = faultOfOrder(world, { order, own }, [here.get(order), there.get(order)]);
    const states = own.map(({ kind, state }) => `${kind} ${state}`).join(', ');
    if (fault !== null) throw new Error(`at rest: ${site.place}: ${order} ${fault} (${states})`);
  }
}

function faultOfOrder(
  world: LatchkeyWorld,
  { order, own }: { order: string; own: readonly OperationRow[] },
  [here, there]: readonly [Redeemed | undefined, Redeemed | undefined],
): string | null {
  const last = world.authority.books.about('redemption', order).at(-1);
  const isOwn = own.some(({ id }) => id === last?.operation);
  if (here === undefined) {
    const counts = isOwn && last?.change === 1 && !isVoidedAgain(world, own);
    return counts ? 'was not redeemed, and counts' : null;
  }
  // A person decides about a redemption that was refused after its caller was answered, here or in the middle.
  const redeem = own.findLast(({ kind }) => kind === 'redeem');
  const above = redeem === undefined ? [] : takenAbove(world.sites, redeem);
  if ([redeem, ...above].some((each) => each?.state === 'dead')) return null;
  if (there === undefined) {
    const isVoidedElsewhere = (last?.change === -1 && !isOwn) || isVoidedAbove(world, order, own);
    return isVoidedElsewhere ? null : 'was redeemed, and does not count';
  }
  const isTold = isOwn && last?.change === 1;
  // An agent below was told what the agent in the middle knew.
  if (isTold && here.overLimit !== there.overLimit && !world.troubles.has('chain'))
    return `is over_limit ${here.overLimit}; it is ${there.overLimit}`;
  const isNoted = [...own, ...above].some(
    (each) => each.lastError?.startsWith('the upstream takes off') === true,
  );
  if (isTold && !isNoted && here.discount !== there.discount)
    return `takes ${here.discount} cents off; it takes ${there.discount}`;
  // Below 0: another coupon got the id before the list showed the new one, or the creation conflicts.
  return here.couponId === there.couponId || here.couponId < 0
    ? null
    : `has redeemed the coupon ${here.couponId}; it was ${there.couponId}`;
}

/**
 * Whether an agent below has sent a void again because the agent in the middle has lost it with its store. There it voids a later
 * redemption, too (src/sync/BETWEEN-LATCHKEYS.md, Chains); the authority has carried it out before.
 */
function isVoidedAgain({ authority, troubles }: LatchkeyWorld, own: readonly OperationRow[]): boolean {
  const again = own.at(-1);
  const isLost = troubles.has('chain') && losing.some((name) => troubles.has(name));
  return isLost && again?.kind === 'void' && authority.books.of(again.id).length > 0;
}

/** Whether a caller at the agent in the middle has voided the order before it went up. */
function isVoidedAbove({ sites }: LatchkeyWorld, order: string, own: readonly OperationRow[]): boolean {
  const middle = sites.find(({ isMiddle }) => isMiddle);
  const asked = [...(middle?.told.orders() ?? [])].find((each) => each.order === order);
  if (asked === undefined || asked.known === 'redeemed') return false;
  const above = operationsAbove(sites);
  return own.some(
    ({ id }) => isOpenAbove(sites, id) || laterThan(id, above).some((each) => isVoidOf(each, order)),
  );
}

const terms = `id, code, scope, product_key, percent_off, amount_off, end_at / 1000 AS ends_at,
  minimum_purchase_amount, usage_limit, notes`;

/** The operation that creates the coupon with a provisional id: as it is here, and in the middle. */
function creationsOf({ sites }: LatchkeyWorld, site: Site, provisionalId: number): OperationRow[] {
  const created = site.machine.database
    .prepare("SELECT id FROM outbox WHERE kind = 'create_coupon' AND payload ->> 'id' = ?")
    .get(provisionalId);
  const here = site.operations().find(({ id }) => id === created?.['id']);
  return [here, here && operationAbove(sites, here.id)].filter((each) => each !== undefined);
}

/** The mirror has the coupons of the authority, and no others but those that wait for a person, here or in the middle. */
function checkMirror(world: LatchkeyWorld, site: Site): void {
  const stored = world.authority.machine.database.prepare(`SELECT ${terms} FROM coupon ORDER BY id`).all();
  const mirrored = site.machine.database.prepare(`SELECT ${terms} FROM mirrored_coupon ORDER BY id`).all();
  const confirmed = mirrored.filter(
    ({ id }) => !creationsOf(world, site, Number(id)).some(({ held }) => held === 1),
  );
  const [seen, is] = [confirmed, stored].map((rows) => rows.map((row) => JSON.stringify(row)));
  const missing = is?.find((row) => seen?.includes(row) !== true);
  const other = seen?.find((row) => is?.includes(row) !== true);
  if (missing !== undefined || other !== undefined)
    throw new Error(`mirror: ${site.place}: it has ${other}, and the authority has ${missing}`);
}

/** A person decides about the creation of a coupon, or has given it up. */
const forPerson: ReadonlySet<string> = new Set(['conflicted', 'dead', 'uncertain', 'dropped']);

/** A coupon that callers were answered exists, under the id that they were answered. */
function checkCreated(world: LatchkeyWorld, site: Site): void {
  const { authority, deleted } = world;
  const { machine, told, place } = site;
  for (const [id, code] of told.created) {
    // A restored authority may give a coupon another id; the provisional id stays valid.
    const isRenumbered = id > 0 && authority.restores > 0;
    const isForPerson = creationsOf(world, site, id).some(({ state }) => forPerson.has(state));
    if (isRenumbered || isForPerson || deleted.has(foldCouponCode(code))) continue;
    const seen = machine.transaction.mirror.get(id)?.coupon ?? null;
    const is = seen === null ? null : authority.machine.transaction.coupons.get('default', seen.id);
    if (seen?.code !== code || is?.code !== code)
      throw new Error(
        `created: ${place}: ${code} was answered as ${id}, which is ${seen?.code} here and ${is?.code} there`,
      );
  }
}
