import {
  foldCouponCode,
  type Coupon,
  type CouponFilter,
  type CouponTerms,
} from '../../../domain/checkout/coupon.ts';
import type {
  CouponReads,
  CouponTable,
  AwaitableTable,
  AuthorityTable,
  ListedRedemption,
  RedemptionReads,
  RedemptionTable,
} from '../../../service/tables.ts';
import type { Cart, Quote, Redemption } from '../../../domain/checkout/quote.ts';
import { couponFrom, stateInSql, termsColumns } from '../../coupon-row.ts';
import type { Names } from '../names.ts';
import type { Condition, Prepare, SqlValue, WritingPrepare } from '../statements.ts';

const couponColumns = `id, code, scope, product_key AS "productKey", collection_id AS "collectionId",
  percent_off AS "percentOff", amount_off AS "amountOff", start_at AS "startAt", end_at AS "endAt",
  minimum_purchase_amount AS "minimumPurchaseAmount", usage_limit AS "usageLimit", notes`;

/** The conditions of a filtered list. */
function couponConditions(
  { coupon, redemptionCount }: Names,
  accountId: string,
  filter: CouponFilter,
): Condition[] {
  const { code, productKey, state } = filter;
  const redemptions = `coalesce((SELECT redeemed.count FROM ${redemptionCount} AS redeemed
    WHERE redeemed.account_id = ${coupon}.account_id AND redeemed.coupon_id = ${coupon}.id), 0)`;
  return [
    [(place) => `account_id = ${place}`, accountId],
    [(place) => `folded_code = ${place}`, code === undefined ? undefined : foldCouponCode(code)],
    [(place) => `product_key = ${place}`, productKey],
    [(is, at = '') => `${is} = ${stateInSql(at, redemptions)}`, state?.is, state?.at],
  ];
}

/** `locking`: the locking clause for reading a single coupon. */
export function couponReads(prepare: Prepare, locking = ''): AwaitableTable<CouponReads> {
  const { names } = prepare;
  const { coupon } = names;
  const select = `SELECT ${couponColumns} FROM ${coupon}`;
  const byCode = prepare.query(`${select} WHERE account_id = $1 AND folded_code = $2 ${locking}`, couponFrom);
  const listed = prepare.list({ select: couponColumns, from: coupon, key: ['id'] }, couponFrom);
  return {
    get: prepare.query(`${select} WHERE account_id = $1 AND id = $2 ${locking}`, couponFrom).first,
    byCode: (accountId, code) => byCode.first(accountId, foldCouponCode(code)),
    after: (accountId, id, limit) =>
      listed.list(couponConditions(names, accountId, {}), { limit, offset: 0, cursor: [id] }),
    list: (accountId, page, filter = {}) => listed.list(couponConditions(names, accountId, filter), page),
    count: (accountId, filter = {}) => listed.count(couponConditions(names, accountId, filter)),
  };
}

function termsValues(terms: CouponTerms): SqlValue[] {
  const row = termsColumns(terms);
  return [
    row.code,
    foldCouponCode(row.code),
    row.scope,
    row.productKey,
    row.collectionId,
    row.percentOff,
    row.amountOff,
    row.startAt,
    row.endAt,
    row.minimumPurchaseAmount,
    row.usageLimit,
    row.notes,
  ];
}

/**
 * Reading a single coupon locks it, because the code may belong to another coupon after the wait for the lock of the
 * first one.
 */
export function couponTable(prepare: WritingPrepare): AwaitableTable<CouponTable> {
  const { coupon, couponNumber } = prepare.names;
  const add = prepare.column<number>(`WITH numbered AS (
       UPDATE ${couponNumber} SET last = greatest(last, coalesce($1, last + 1)) RETURNING last
     )
     INSERT INTO ${coupon} (id, account_id, code, folded_code, scope, product_key, collection_id, percent_off,
       amount_off, start_at, end_at, minimum_purchase_amount, usage_limit, notes)
     SELECT coalesce($1::bigint, last), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14 FROM numbered
     RETURNING id`);
  const taken = prepare.query(`SELECT 1 FROM ${coupon} WHERE id = $1`, () => true);
  const put =
    prepare.write(`UPDATE ${coupon} SET code = $2, folded_code = $3, scope = $4, product_key = $5, collection_id = $6,
       percent_off = $7, amount_off = $8, start_at = $9, end_at = $10, minimum_purchase_amount = $11,
       usage_limit = $12, notes = $13
     WHERE id = $1`);
  return {
    ...couponReads(prepare, 'FOR NO KEY UPDATE'),
    isTaken: async (id) => (await taken.first(id)) !== null,
    async add(accountId, terms, wanted = null): Promise<Coupon> {
      const id = await add.first(wanted, accountId, ...termsValues(terms));
      if (id === null) throw new Error('the coupon got no id');
      return { ...terms, id };
    },
    put: (changed) => put(changed.id, ...termsValues(changed)),
    remove: prepare.write(`DELETE FROM ${coupon} WHERE id = $1`),
  };
}

type RedemptionRow = Omit<ListedRedemption, 'cart' | 'quote' | 'overLimit'> & {
  cart: string;
  quote: string;
  overLimit: boolean;
};

const redemptionColumns = `id, order_id AS "order", coupon_id AS "couponId", cart, quote,
  redeemed_at AS "redeemedAt", over_limit AS "overLimit"`;
const listedFrom = ({ cart, quote, overLimit, ...row }: RedemptionRow): ListedRedemption => ({
  ...row,
  cart: JSON.parse(cart) as Cart,
  quote: JSON.parse(quote) as Quote,
  ...(overLimit && { overLimit }),
});
const redemptionFrom = (row: RedemptionRow): Redemption => {
  const { id: _, ...redemption } = listedFrom(row);
  return redemption;
};

export function redemptionReads(prepare: Prepare): AwaitableTable<RedemptionReads> {
  const { redemption, redemptionCount } = prepare.names;
  const select = `SELECT ${redemptionColumns} FROM ${redemption}`;
  const countOf = prepare.column<number>(
    `SELECT count FROM ${redemptionCount} WHERE account_id = $1 AND coupon_id = $2`,
  );
  const listed = prepare.list({ select: redemptionColumns, from: redemption, key: ['id'] }, listedFrom);
  return {
    get: prepare.query(`${select} WHERE account_id = $1 AND order_id = $2`, redemptionFrom).first,
    countOf: async (accountId, couponId) => (await countOf.first(accountId, couponId)) ?? 0,
    listOf: (accountId, couponId, page) => {
      const ofCoupon: Condition[] = [
        [(place) => `account_id = ${place}`, accountId],
        [(place) => `coupon_id = ${place}`, couponId],
      ];
      return listed.list(ofCoupon, page);
    },
    ordersOf:
      prepare.column<string>(`SELECT order_id FROM ${redemption} WHERE account_id = $1 AND coupon_id = $2
     ORDER BY id DESC LIMIT $3::bigint`).all,
  };
}

/** Also counts the redemptions of each coupon. */
export function redemptionTable(prepare: WritingPrepare): AuthorityTable<RedemptionTable> {
  const { redemption, redemptionCount } = prepare.names;
  const add = prepare.write(`WITH added AS (
       INSERT INTO ${redemption} (account_id, order_id, coupon_id, cart, quote, redeemed_at, over_limit)
       VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING account_id, coupon_id
     )
     INSERT INTO ${redemptionCount} AS redeemed (account_id, coupon_id, count)
     SELECT account_id, coupon_id, 1 FROM added
     ON CONFLICT (account_id, coupon_id) DO UPDATE SET count = redeemed.count + 1`);
  const remove = prepare.query(
    `WITH removed AS (
       DELETE FROM ${redemption} WHERE account_id = $1 AND order_id = $2 RETURNING account_id, coupon_id
     )
     UPDATE ${redemptionCount} AS redeemed SET count = redeemed.count - 1 FROM removed
     WHERE redeemed.account_id = removed.account_id AND redeemed.coupon_id = removed.coupon_id
     RETURNING 1`,
    () => true,
  );
  return {
    ...redemptionReads(prepare),
    add: (accountId, { order, couponId, cart, quote, redeemedAt, overLimit = false }) =>
      add(accountId, order, couponId, JSON.stringify(cart), JSON.stringify(quote), redeemedAt, overLimit),
    remove: async (accountId, order) => (await remove.first(accountId, order)) !== null,
  };
}
