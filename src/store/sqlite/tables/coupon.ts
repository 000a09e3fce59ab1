import type { DatabaseSync } from 'node:sqlite';
import { foldCouponCode } from '../../../domain/checkout/coupon.ts';
import type { CouponReads, CouponTable } from '../../../service/authority/tables.ts';
import {
  couponColumns,
  couponFrom,
  filteredCoupons,
  filterParameters,
  termsColumns,
} from '../../coupon-row.ts';
import { prepareChange, prepareCount, prepareQuery } from '../statements.ts';

const select = `SELECT ${couponColumns} FROM coupon`;

/** Prepares the reads of an account's coupons. */
export function couponReads(database: DatabaseSync): CouponReads {
  const get = prepareQuery(database, `${select} WHERE account_id = ? AND id = ?`, couponFrom);
  const byCode = prepareQuery(database, `${select} WHERE account_id = ? AND folded_code = ?`, couponFrom);
  const list = prepareQuery(
    database,
    `${select} WHERE account_id = ?1 AND ${filteredCoupons('coupon')} ORDER BY id LIMIT ?6 OFFSET ?7`,
    couponFrom,
  );
  const after = prepareQuery(
    database,
    `${select} WHERE account_id = ? AND id > ? ORDER BY id LIMIT ?`,
    couponFrom,
  );
  const count = prepareCount(
    database,
    `SELECT count(*) AS count FROM coupon WHERE account_id = ?1 AND ${filteredCoupons('coupon')}`,
  );
  return {
    get: (accountId, id) => get.first(accountId, id),
    after: (accountId, id, limit) => after.all(accountId, id, limit),
    byCode: (accountId, code) => byCode.first(accountId, foldCouponCode(code)),
    list: (accountId, { limit, offset }, filter = {}) =>
      list.all(...filterParameters(accountId, filter), limit, offset),
    count: (accountId, filter = {}) => count(...filterParameters(accountId, filter)),
  };
}

/** Prepares the table of coupons. */
export function couponTable(database: DatabaseSync): CouponTable {
  const add = prepareChange(
    database,
    `INSERT INTO coupon (id, account_id, code, folded_code, scope, product_key, collection_id, percent_off,
       amount_off, start_at, end_at, minimum_purchase_amount, usage_limit, notes)
     VALUES (:id, :accountId, :code, :foldedCode, :scope, :productKey, :collectionId, :percentOff,
       :amountOff, :startAt, :endAt, :minimumPurchaseAmount, :usageLimit, :notes)`,
  );
  const taken = prepareCount(database, 'SELECT count(*) AS count FROM coupon WHERE id = ?');
  const put = prepareChange(
    database,
    `UPDATE coupon SET code = :code, folded_code = :foldedCode, scope = :scope, product_key = :productKey,
       collection_id = :collectionId, percent_off = :percentOff, amount_off = :amountOff, start_at = :startAt,
       end_at = :endAt, minimum_purchase_amount = :minimumPurchaseAmount, usage_limit = :usageLimit,
       notes = :notes
     WHERE id = :id`,
  );
  const remove = prepareChange(database, 'DELETE FROM coupon WHERE id = :id');
  return {
    ...couponReads(database),
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
    remove(id) {
      remove({ id });
    },
  };
}
