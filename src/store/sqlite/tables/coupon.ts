import { foldCouponCode, type CouponFilter } from '../../../domain/checkout/coupon.ts';
import type {
  CouponReads,
  CouponTable,
  ListedRedemption,
  RedemptionReads,
  RedemptionTable,
} from '../../../service/tables.ts';
import type { Cart, Quote, Redemption } from '../../../domain/checkout/quote.ts';
import { couponFrom, stateInSql, termsColumns } from '../../coupon-row.ts';
import { type Bit, type Prepare, afterNumber } from '../statements.ts';

/** The columns of a `CouponRow`. */
export const couponColumns = `id, code, scope, product_key AS productKey, collection_id AS collectionId,
  percent_off AS percentOff, amount_off AS amountOff, start_at AS startAt, end_at AS endAt,
  minimum_purchase_amount AS minimumPurchaseAmount, usage_limit AS usageLimit, notes`;

const selectCoupon = `SELECT ${couponColumns} FROM coupon`;

/** SQL for the present id of a coupon; `parameter` may be its provisional id. */
export const couponIdNow = (parameter: string): string =>
  `coalesce((SELECT real_id FROM provisional_coupon WHERE id = -${parameter}), ${parameter})`;

/** The condition of a filtered list, for `filterParameters`. */
export function filteredCoupons(table: 'coupon' | 'mirrored_coupon'): string {
  const redemptions = `coalesce((SELECT count FROM redemption_count
    WHERE redemption_count.account_id = ?1 AND coupon_id = ${table}.id), 0)`;
  return `(?2 IS NULL OR folded_code = ?2) AND (?3 IS NULL OR product_key = ?3)
    AND (?4 IS NULL OR ?4 = ${stateInSql('?5', redemptions)})`;
}

export function filterParameters(
  accountId: string,
  { code, productKey, state }: CouponFilter,
): (string | number | null)[] {
  const folded = code === undefined ? null : foldCouponCode(code);
  return [accountId, folded, productKey ?? null, state?.is ?? null, state?.at ?? null];
}

export function couponReads(prepare: Prepare): CouponReads {
  const byCode = prepare.query(`${selectCoupon} WHERE account_id = ? AND folded_code = ?`, couponFrom);
  const list = prepare.query(
    `${selectCoupon} WHERE account_id = ?1 AND ${filteredCoupons('coupon')} AND id > ?6
     ORDER BY id LIMIT ?7 OFFSET ?8`,
    couponFrom,
  );
  const count = prepare.count(
    `SELECT count(*) AS count FROM coupon WHERE account_id = ?1 AND ${filteredCoupons('coupon')}`,
  );
  return {
    get: prepare.query(`${selectCoupon} WHERE account_id = ? AND id = ?`, couponFrom).first,
    after: prepare.query(`${selectCoupon} WHERE account_id = ? AND id > ? ORDER BY id LIMIT ?`, couponFrom)
      .all,
    byCode: (accountId, code) => byCode.first(accountId, foldCouponCode(code)),
    list: (accountId, page, filter = {}) =>
      list.all(...filterParameters(accountId, filter), afterNumber(page), page.limit, page.offset),
    count: (accountId, filter = {}) => count(...filterParameters(accountId, filter)),
  };
}

export function couponTable(prepare: Prepare): CouponTable {
  const add =
    prepare.change(`INSERT INTO coupon (id, account_id, code, folded_code, scope, product_key, collection_id, percent_off,
       amount_off, start_at, end_at, minimum_purchase_amount, usage_limit, notes)
     VALUES (:id, :accountId, :code, :foldedCode, :scope, :productKey, :collectionId, :percentOff,
       :amountOff, :startAt, :endAt, :minimumPurchaseAmount, :usageLimit, :notes)`);
  const taken = prepare.count('SELECT count(*) AS count FROM coupon WHERE id = ?');
  const put =
    prepare.change(`UPDATE coupon SET code = :code, folded_code = :foldedCode, scope = :scope, product_key = :productKey,
       collection_id = :collectionId, percent_off = :percentOff, amount_off = :amountOff, start_at = :startAt,
       end_at = :endAt, minimum_purchase_amount = :minimumPurchaseAmount, usage_limit = :usageLimit,
       notes = :notes
     WHERE id = :id`);
  const remove = prepare.change('DELETE FROM coupon WHERE id = :id');
  return {
    ...couponReads(prepare),
    isTaken: (id) => taken(id) > 0,
    add(accountId, terms, wanted = null) {
      const foldedCode = foldCouponCode(terms.code);
      const { rowId: id } = add({ id: wanted, accountId, foldedCode, ...termsColumns(terms) });
      return { ...terms, id };
    },
    put(coupon) {
      const { id, code } = coupon;
      put({ id, foldedCode: foldCouponCode(code), ...termsColumns(coupon) });
    },
    remove: (id) => remove({ id }),
  };
}

type RedemptionRow = Omit<ListedRedemption, 'cart' | 'quote' | 'overLimit'> & {
  cart: string;
  quote: string;
  overLimit: Bit;
};

const selectRedemption = `SELECT id, order_id AS "order", coupon_id AS couponId, cart, quote, redeemed_at AS redeemedAt,
  over_limit AS overLimit FROM redemption`;

function listedFrom(row: RedemptionRow): ListedRedemption {
  return { ...redemptionFrom(row), id: row.id };
}

function redemptionFrom(row: RedemptionRow): Redemption {
  const { order, couponId, cart, quote, redeemedAt, overLimit } = row;
  return {
    order,
    couponId,
    cart: JSON.parse(cart) as Cart,
    // The stored quote has the id that the coupon had at that time.
    quote: { ...(JSON.parse(quote) as Quote), couponId },
    redeemedAt,
    ...(overLimit === 1 && { overLimit: true }),
  };
}

const ofCoupon = `WHERE account_id = ?1 AND coupon_id = ${couponIdNow('?2')}`;

export function redemptionReads(prepare: Prepare): RedemptionReads {
  const countOf = prepare.column<number>(`SELECT count FROM redemption_count ${ofCoupon}`);
  const listOf = prepare.query(
    `${selectRedemption} ${ofCoupon} AND id > ?3 ORDER BY id LIMIT ?4 OFFSET ?5`,
    listedFrom,
  );
  return {
    get: prepare.query(`${selectRedemption} WHERE account_id = ? AND order_id = ?`, redemptionFrom).first,
    countOf: (accountId, couponId) => countOf.first(accountId, couponId) ?? 0,
    listOf: (accountId, couponId, page) =>
      listOf.all(accountId, couponId, afterNumber(page), page.limit, page.offset),
    ordersOf: prepare.column<string>(
      `SELECT order_id AS "order" FROM redemption ${ofCoupon} ORDER BY id DESC LIMIT ?3`,
    ).all,
  };
}

export function redemptionTable(prepare: Prepare): RedemptionTable {
  const add =
    prepare.change(`INSERT INTO redemption (account_id, order_id, coupon_id, cart, quote, redeemed_at, over_limit)
     VALUES (:accountId, :order, :couponId, :cart, :quote, :redeemedAt, :overLimit)`);
  const remove = prepare.change('DELETE FROM redemption WHERE account_id = :accountId AND order_id = :order');
  const renumber = prepare.change(
    'UPDATE redemption SET coupon_id = :to WHERE account_id = :accountId AND coupon_id = :from',
  );
  return {
    ...redemptionReads(prepare),
    add: (accountId, { cart, quote, overLimit = false, ...redemption }) =>
      add({ accountId, ...redemption, overLimit, cart: JSON.stringify(cart), quote: JSON.stringify(quote) }),
    remove: (accountId, order) => remove({ accountId, order }).changes > 0,
    renumberCoupon: (accountId, from, to) => renumber({ accountId, from, to }),
  };
}
