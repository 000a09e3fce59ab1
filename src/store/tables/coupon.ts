import {
  foldCouponCode,
  type Coupon,
  type CouponDiscount,
  type CouponFilter,
  type CouponScope,
  type CouponTerms,
} from '../../domain/checkout/coupon.ts';
import type { Redemption } from '../../domain/checkout/quote.ts';
import type {
  CouponReads,
  CouponTable,
  ListedRedemption,
  RedemptionReads,
  RedemptionTable,
} from '../../service/tables.ts';
import {
  columns,
  type Condition,
  type Engine,
  type On,
  type Returned,
  type Sql,
  type SqlValue,
  type WritingSql,
} from '../sql.ts';

type ScopeColumns =
  | { scope: 'single'; productKey: string; collectionId: null }
  | { scope: 'multi'; productKey: null; collectionId: null }
  | { scope: 'collection'; productKey: null; collectionId: string };
type DiscountColumns = { percentOff: number; amountOff: null } | { percentOff: null; amountOff: number };

export type CouponRow = Omit<Coupon, 'scope' | 'discount'> & ScopeColumns & DiscountColumns;

/** Columns of the tables `coupon` and `mirrored_coupon`. */
export const coupon = columns<CouponRow & { foldedCode: string }>(`id, code, folded_code, scope, product_key,
  collection_id, percent_off, amount_off, start_at, end_at, minimum_purchase_amount, usage_limit, notes`);

export function couponFrom(row: CouponRow): Coupon {
  const { id, code, startAt, endAt, minimumPurchaseAmount, usageLimit, notes } = row;
  const scope = scopeFrom(row);
  const discount = discountFrom(row);
  return { id, code, scope, discount, startAt, endAt, minimumPurchaseAmount, usageLimit, notes };
}

function scopeFrom(row: ScopeColumns): CouponScope {
  switch (row.scope) {
    case 'single':
      return { type: 'single', productKey: row.productKey };
    case 'multi':
      return { type: 'multi' };
    case 'collection':
      return { type: 'collection', collectionId: row.collectionId };
    default:
      return row satisfies never;
  }
}

function discountFrom(row: DiscountColumns): CouponDiscount {
  if (row.percentOff !== null) return { type: 'percent', percentOff: row.percentOff };
  return { type: 'amount', amountOff: row.amountOff };
}

/** The values of `coupon`. `id`: null generates one. */
export function couponValues(id: number | null, { scope, discount, ...terms }: CouponTerms): SqlValue[] {
  return coupon.values({
    ...terms,
    id,
    foldedCode: foldCouponCode(terms.code),
    scope: scope.type,
    productKey: scope.type === 'single' ? scope.productKey : null,
    collectionId: scope.type === 'collection' ? scope.collectionId : null,
    percentOff: discount.type === 'percent' ? discount.percentOff : null,
    amountOff: discount.type === 'amount' ? discount.amountOff : null,
  } as CouponRow & { foldedCode: string });
}

/** The conditions of a filtered list. `table`: `coupon`, or a table with its columns. */
export function couponConditions(
  table: string,
  accountId: string,
  { code, productKey, state }: CouponFilter,
): Condition[] {
  const redemptions = `coalesce((SELECT redeemed.count FROM latchkey.redemption_count AS redeemed
    WHERE redeemed.account_id = $3 AND redeemed.coupon_id = ${table}.id), 0)`;
  return [
    ['folded_code = $1', code === undefined ? undefined : foldCouponCode(code)],
    ['product_key = $1', productKey],
    [
      // `couponState` in SQL.
      `$1 = CASE WHEN $2 > end_at THEN 'ended' WHEN ${redemptions} >= usage_limit THEN 'used_up'
        WHEN $2 < start_at THEN 'scheduled' ELSE 'active' END`,
      state?.is,
      state?.at,
      accountId,
    ],
  ];
}

/** `locking`: the end of a SELECT of a single coupon. */
export function couponReads<E extends Engine>(sql: Sql<E>, locking = ''): On<E, CouponReads> {
  const from = 'latchkey.coupon';
  const select = `SELECT ${coupon.list} FROM ${from} WHERE account_id = $1`;
  const byCode = sql.get(`${select} AND folded_code = $2 ${locking}`, couponFrom);
  const listed = sql.list({ select: coupon.list, from, key: ['id'] }, couponFrom);
  const conditionsOf = (accountId: string, filter: CouponFilter = {}): Condition[] => [
    ['account_id = $1', accountId],
    ...couponConditions('coupon', accountId, filter),
  ];
  return {
    get: sql.get(`${select} AND id = $2 ${locking}`, couponFrom),
    byCode: (accountId, code) => byCode(accountId, foldCouponCode(code)),
    after: (accountId, id, limit) => listed.list(conditionsOf(accountId), { limit, offset: 0, cursor: [id] }),
    list: (accountId, page, filter) => listed.list(conditionsOf(accountId, filter), page),
    count: (accountId, filter) => listed.count(conditionsOf(accountId, filter)),
  };
}

const insertCoupon = coupon.insert('coupon', 'account_id');

/** An INSERT that generates an id if it is null. On a server, one row has the last id, so that no id is used twice. */
function insertNumbered(engine: Engine): string {
  if (engine === 'sqlite') return insertCoupon;
  return `WITH numbered AS (
      UPDATE latchkey.coupon_number SET last = greatest(last, coalesce($1, last + 1)) RETURNING last
    ) ${insertCoupon.replace('$1', () => 'coalesce($1, (SELECT last FROM numbered))')}`;
}

/**
 * Reading a single coupon locks it, because the code may belong to another coupon after the wait for the lock of the
 * first one.
 */
export function couponTable<E extends Engine>(sql: WritingSql<E>): On<E, CouponTable> {
  const add = sql.get(`${insertNumbered(sql.engine)} RETURNING ${coupon.list}`, couponFrom);
  const put = sql.run(`UPDATE latchkey.coupon SET ${coupon.set(['id'])} WHERE id = $1`);
  return {
    ...couponReads(sql, sql.dialect.forUpdate),
    isTaken: sql.exists('SELECT 1 FROM latchkey.coupon WHERE id = $1'),
    add: (accountId, terms, id = null) =>
      // An INSERT returns its row, or fails.
      add(...couponValues(id, terms), accountId) as Returned<E, Coupon>,
    put: (changed) => put(...couponValues(changed.id, changed)),
    remove: sql.run('DELETE FROM latchkey.coupon WHERE id = $1'),
  };
}

type RedemptionRow = Omit<ListedRedemption, 'overLimit'> & { overLimit: boolean };

const redemption = columns<RedemptionRow>(
  'id, order_id AS order, coupon_id, cart JSON, quote JSON, redeemed_at, over_limit AS overLimit BOOL',
);

function listedFrom(row: never): ListedRedemption {
  const { overLimit, ...same } = redemption.from(row);
  // The stored quote has the id that the coupon had at that time.
  return { ...same, quote: { ...same.quote, couponId: same.couponId }, ...(overLimit && { overLimit }) };
}

function redemptionFrom(row: never): Redemption {
  const { id: _, ...same } = listedFrom(row);
  return same;
}

/** SQL for the present id of a coupon. On an agent, `parameter` may be its provisional id. */
export function couponIdNow(engine: Engine, parameter: string): string {
  if (engine !== 'sqlite') return parameter;
  return `coalesce((SELECT real_id FROM provisional_coupon WHERE id = -${parameter}), ${parameter})`;
}

export function redemptionReads<E extends Engine>(sql: Sql<E>): On<E, RedemptionReads> {
  const from = 'latchkey.redemption';
  const listed = sql.list({ select: redemption.list, from, key: ['id'] }, listedFrom);
  const ofCoupon = `coupon_id = ${couponIdNow(sql.engine, '$2')}`;
  return {
    get: sql.get(
      `SELECT ${redemption.list} FROM ${from} WHERE account_id = $1 AND order_id = $2`,
      redemptionFrom,
    ),
    countOf: sql.count(`SELECT count FROM latchkey.redemption_count WHERE account_id = $1 AND ${ofCoupon}`),
    listOf: (accountId, couponId, page) =>
      listed.list([[`account_id = $1 AND ${ofCoupon}`, accountId, couponId]], page),
    ordersOf: sql.column(
      `SELECT order_id FROM ${from} WHERE account_id = $1 AND ${ofCoupon} ORDER BY id DESC LIMIT $3`,
    ),
  };
}

const insertRedemption = `INSERT INTO latchkey.redemption
  (account_id, order_id, coupon_id, cart, quote, redeemed_at, over_limit) VALUES ($1, $2, $3, $4, $5, $6, $7)`;
const deleteRedemption = `DELETE FROM latchkey.redemption WHERE account_id = $1 AND order_id = $2
  RETURNING account_id, coupon_id`;

/** The same, and a count of the redemptions of each coupon: on SQLite by triggers of the schema. */
function redemptionWrites(engine: Engine): { add: string; remove: string } {
  if (engine === 'sqlite') return { add: insertRedemption, remove: deleteRedemption };
  return {
    add: `WITH added AS (${insertRedemption} RETURNING account_id, coupon_id)
      INSERT INTO latchkey.redemption_count AS redeemed (account_id, coupon_id, count)
      SELECT account_id, coupon_id, 1 FROM added
      ON CONFLICT (account_id, coupon_id) DO UPDATE SET count = redeemed.count + 1`,
    remove: `WITH removed AS (${deleteRedemption})
      UPDATE latchkey.redemption_count AS redeemed SET count = redeemed.count - 1 FROM removed
      WHERE redeemed.account_id = removed.account_id AND redeemed.coupon_id = removed.coupon_id RETURNING 1`,
  };
}

export function redemptionTable<E extends Engine>(sql: WritingSql<E>): On<E, RedemptionTable> {
  const writes = redemptionWrites(sql.engine);
  const add = sql.run(writes.add);
  return {
    ...redemptionReads(sql),
    add: (accountId, { order, couponId, cart, quote, redeemedAt, overLimit = false }) =>
      add(accountId, order, couponId, JSON.stringify(cart), JSON.stringify(quote), redeemedAt, overLimit),
    remove: sql.exists(writes.remove),
    renumberCoupon: sql.run(
      'UPDATE latchkey.redemption SET coupon_id = $3 WHERE account_id = $1 AND coupon_id = $2',
    ),
  };
}
