import type { DatabaseSync } from 'node:sqlite';
import { foldCouponCode } from '../../../../domain/checkout/coupon.ts';
import { defaultAccountId } from '../../../../domain/access/principal.ts';
import type { MirroredCoupon, MirrorReads, MirrorTable } from '../../../../service/agent/tables.ts';
import { couponFrom, termsColumns, type CouponRow } from '../../../coupon-row.ts';
import { prepareChange, prepareCount, prepareQuery } from '../../statements.ts';
import { afterNumber } from '../cursor.ts';
import { couponColumns, filteredCoupons, filterParameters } from '../coupon.ts';

const select = `SELECT ${couponColumns}, confirmed_at AS confirmedAt FROM mirrored_coupon`;
const fromRow = (row: CouponRow & { confirmedAt: number | null }): MirroredCoupon => ({
  coupon: couponFrom(row),
  confirmedAt: row.confirmedAt,
});

/** SQL for the present id of a coupon; `parameter` may be its provisional id. */
export const couponIdNow = (parameter: string): string =>
  `coalesce((SELECT real_id FROM provisional_coupon WHERE id = -${parameter}), ${parameter})`;

export function mirrorReads(database: DatabaseSync): MirrorReads {
  const get = prepareQuery(database, `${select} WHERE id = ${couponIdNow('?1')}`, fromRow);
  // The upstream may distinguish letter case, so a code that matches exactly comes first.
  const byCode = prepareQuery(
    database,
    `${select} WHERE folded_code = ? ORDER BY confirmed_at IS NULL, code <> ?, id LIMIT 1`,
    fromRow,
  );
  const provisionalByCode = prepareQuery(
    database,
    `${select} WHERE folded_code = ? AND confirmed_at IS NULL ORDER BY id LIMIT 1`,
    fromRow,
  );
  const where = `WHERE ${filteredCoupons('mirrored_coupon')}`;
  const list = prepareQuery(
    database,
    `${select} ${where} AND id > ?6 ORDER BY id LIMIT ?7 OFFSET ?8`,
    fromRow,
  );
  const count = prepareCount(database, `SELECT count(*) AS count FROM mirrored_coupon ${where}`);
  const shownIds = prepareQuery(
    database,
    'SELECT id FROM mirrored_coupon WHERE id > 0 ORDER BY id',
    (row: { id: number }) => row.id,
  );
  const redeemedIds = prepareQuery(
    database,
    'SELECT coupon_id AS id FROM redemption_count WHERE coupon_id > 0 AND count > 0',
    (row: { id: number }) => row.id,
  );
  const aliases = prepareQuery(
    database,
    'SELECT -id AS provisionalId, real_id AS id FROM provisional_coupon WHERE real_id IS NOT NULL',
    (row: { provisionalId: number; id: number }) => ({ ...row }),
  );
  return {
    get: (id) => get.first(id),
    byCode: (code) => byCode.first(foldCouponCode(code), code),
    provisionalByCode: (code) => provisionalByCode.first(foldCouponCode(code)),
    list: (page, filter = {}) =>
      list.all(...filterParameters(defaultAccountId, filter), afterNumber(page), page.limit, page.offset),
    count: (filter = {}) => count(...filterParameters(defaultAccountId, filter)),
    shownIds: () => shownIds.all(),
    redeemedIds: () => redeemedIds.all(),
    aliases: () => aliases.all(),
  };
}

export function mirrorTable(database: DatabaseSync): MirrorTable {
  const put = prepareChange(
    database,
    `INSERT OR REPLACE INTO mirrored_coupon (id, code, folded_code, scope, product_key, collection_id,
       percent_off, amount_off, start_at, end_at, minimum_purchase_amount, usage_limit, notes, confirmed_at)
     VALUES (:id, :code, :foldedCode, :scope, :productKey, :collectionId,
       :percentOff, :amountOff, :startAt, :endAt, :minimumPurchaseAmount, :usageLimit, :notes, :confirmedAt)`,
  );
  const remove = prepareChange(database, 'DELETE FROM mirrored_coupon WHERE id = :id');
  const addProvisional = prepareChange(database, 'INSERT INTO provisional_coupon (real_id) VALUES (NULL)');
  const alias = prepareChange(
    database,
    'UPDATE provisional_coupon SET real_id = :id WHERE id = -:provisionalId',
  );
  const removeAliases = prepareChange(
    database,
    'UPDATE provisional_coupon SET real_id = NULL WHERE real_id IS NOT NULL',
  );
  const removeShown = prepareChange(database, 'DELETE FROM mirrored_coupon WHERE id > 0');
  const ageShown = prepareChange(
    database,
    'UPDATE mirrored_coupon SET confirmed_at = :confirmedAt WHERE id > 0 AND confirmed_at > :confirmedAt',
  );
  return {
    ...mirrorReads(database),
    put({ coupon, confirmedAt }) {
      const { id, code } = coupon;
      put({ id, foldedCode: foldCouponCode(code), ...termsColumns(coupon), confirmedAt });
    },
    remove(id) {
      remove({ id });
    },
    provisionalId: () => -addProvisional({}).rowId,
    alias(provisionalId, id) {
      alias({ provisionalId, id });
    },
    removeAliases() {
      removeAliases({});
    },
    removeShown() {
      removeShown({});
    },
    ageShown(confirmedAt) {
      ageShown({ confirmedAt });
    },
  };
}
