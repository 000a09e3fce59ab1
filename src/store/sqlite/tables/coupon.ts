import type { DatabaseSync } from 'node:sqlite';
import { foldCouponCode, type CouponFilter } from '../../../domain/checkout/coupon.ts';
import type { CouponReads, CouponTable } from '../../../service/authority/tables.ts';
import { couponFrom, stateInSql, termsColumns } from '../../coupon-row.ts';
import { prepareChange, prepareCount, prepareQuery } from '../statements.ts';
import { afterNumber } from './cursor.ts';

/** The columns of a `CouponRow`. */
export const couponColumns = `id, code, scope, product_key AS productKey, collection_id AS collectionId,
  percent_off AS percentOff, amount_off AS amountOff, start_at AS startAt, end_at AS endAt,
  minimum_purchase_amount AS minimumPurchaseAmount, usage_limit AS usageLimit, notes`;

const select = `SELECT ${couponColumns} FROM coupon`;

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

export function couponReads(database: DatabaseSync): CouponReads {
  const get = prepareQuery(database, `${select} WHERE account_id = ? AND id = ?`, couponFrom);
  const byCode = prepareQuery(database, `${select} WHERE account_id = ? AND folded_code = ?`, couponFrom);
  const list = prepareQuery(
    database,
    `${select} WHERE account_id = ?1 AND ${filteredCoupons('coupon')} AND id > ?6
     ORDER BY id LIMIT ?7 OFFSET ?8`,
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
    list: (accountId, page, filter = {}) =>
      list.all(...filterParameters(accountId, filter), afterNumber(page), page.limit, page.offset),
    count: (accountId, filter = {}) => count(...filterParameters(accountId, filter)),
  };
}

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
