import { foldCouponCode } from '../../../domain/checkout/coupon.ts';
import { defaultAccountId } from '../../../domain/access/principal.ts';
import type { MirroredCoupon, MirrorReads, MirrorTable } from '../../../service/agent/tables.ts';
import { couponFrom, termsColumns, type CouponRow } from '../../coupon-row.ts';
import { type Prepare, afterNumber } from '../statements.ts';
import { couponIdNow, couponColumns, filteredCoupons, filterParameters } from './coupon.ts';

const select = `SELECT ${couponColumns}, confirmed_at AS confirmedAt FROM mirrored_coupon`;
const fromRow = (row: CouponRow & { confirmedAt: number | null }): MirroredCoupon => ({
  coupon: couponFrom(row),
  confirmedAt: row.confirmedAt,
});

export function mirrorReads(prepare: Prepare): MirrorReads {
  // The upstream may distinguish letter case, so a code that matches exactly comes first.
  const byCode = prepare.query(
    `${select} WHERE folded_code = ? ORDER BY confirmed_at IS NULL, code <> ?, id LIMIT 1`,
    fromRow,
  );
  const provisionalByCode = prepare.query(
    `${select} WHERE folded_code = ? AND confirmed_at IS NULL ORDER BY id LIMIT 1`,
    fromRow,
  );
  const where = `WHERE ${filteredCoupons('mirrored_coupon')}`;
  const list = prepare.query(`${select} ${where} AND id > ?6 ORDER BY id LIMIT ?7 OFFSET ?8`, fromRow);
  const count = prepare.count(`SELECT count(*) AS count FROM mirrored_coupon ${where}`);
  return {
    get: prepare.query(`${select} WHERE id = ${couponIdNow('?1')}`, fromRow).first,
    byCode: (code) => byCode.first(foldCouponCode(code), code),
    provisionalByCode: (code) => provisionalByCode.first(foldCouponCode(code)),
    list: (page, filter = {}) =>
      list.all(...filterParameters(defaultAccountId, filter), afterNumber(page), page.limit, page.offset),
    count: (filter = {}) => count(...filterParameters(defaultAccountId, filter)),
    shownIds: prepare.column<number>('SELECT id FROM mirrored_coupon WHERE id > 0 ORDER BY id').all,
    redeemedIds: prepare.column<number>(
      'SELECT coupon_id FROM redemption_count WHERE coupon_id > 0 AND count > 0',
    ).all,
    aliases: prepare.query(
      'SELECT -id AS provisionalId, real_id AS id FROM provisional_coupon WHERE real_id IS NOT NULL',
      (row: { provisionalId: number; id: number }) => ({ ...row }),
    ).all,
  };
}

export function mirrorTable(prepare: Prepare): MirrorTable {
  const put =
    prepare.change(`INSERT OR REPLACE INTO mirrored_coupon (id, code, folded_code, scope, product_key, collection_id,
       percent_off, amount_off, start_at, end_at, minimum_purchase_amount, usage_limit, notes, confirmed_at)
     VALUES (:id, :code, :foldedCode, :scope, :productKey, :collectionId,
       :percentOff, :amountOff, :startAt, :endAt, :minimumPurchaseAmount, :usageLimit, :notes, :confirmedAt)`);
  const remove = prepare.change('DELETE FROM mirrored_coupon WHERE id = :id');
  const addProvisional = prepare.change('INSERT INTO provisional_coupon (real_id) VALUES (NULL)');
  const alias = prepare.change('UPDATE provisional_coupon SET real_id = :id WHERE id = -:provisionalId');
  const removeAliases = prepare.change(
    'UPDATE provisional_coupon SET real_id = NULL WHERE real_id IS NOT NULL',
  );
  const removeShown = prepare.change('DELETE FROM mirrored_coupon WHERE id > 0');
  const ageShown = prepare.change(
    'UPDATE mirrored_coupon SET confirmed_at = :confirmedAt WHERE id > 0 AND confirmed_at > :confirmedAt',
  );
  // A date of 0 says that the upstream must be asked first.
  const shiftDates = prepare.change(`UPDATE mirrored_coupon SET confirmed_at = max(0, confirmed_at - :byMs)
     WHERE confirmed_at > coalesce(:after, 0) AND (:until IS NULL OR confirmed_at <= :until)`);
  return {
    ...mirrorReads(prepare),
    shiftDates: (shift) => void shiftDates({ until: null, ...shift }),
    put({ coupon, confirmedAt }) {
      const { id, code } = coupon;
      put({ id, foldedCode: foldCouponCode(code), ...termsColumns(coupon), confirmedAt });
    },
    remove: (id) => remove({ id }),
    provisionalId: () => -addProvisional({}).rowId,
    alias: (provisionalId, id) => alias({ provisionalId, id }),
    removeAliases: () => removeAliases({}),
    removeShown: () => removeShown({}),
    ageShown: (confirmedAt) => ageShown({ confirmedAt }),
  };
}
