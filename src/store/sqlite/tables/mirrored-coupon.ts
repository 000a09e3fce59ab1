import { foldCouponCode, type CouponFilter } from '../../../domain/checkout/coupon.ts';
import { defaultAccountId } from '../../../domain/access/principal.ts';
import type { MirroredCoupon, MirrorReads, MirrorTable } from '../../../service/agent/tables.ts';
import {
  coupon,
  couponConditions,
  couponFrom,
  couponIdNow,
  couponValues,
  type CouponRow,
} from '../../tables/coupon.ts';
import type { SqliteSql } from '../statements.ts';

const columnList = `${coupon.list}, confirmed_at AS "confirmedAt"`;

function mirroredFrom({ confirmedAt, ...row }: CouponRow & { confirmedAt: number | null }): MirroredCoupon {
  return { coupon: couponFrom(row), confirmedAt };
}

export function mirrorReads(sql: SqliteSql): MirrorReads {
  const select = `SELECT ${columnList} FROM mirrored_coupon`;
  // The upstream may distinguish letter case, so a code that matches exactly comes first.
  const byCode = sql.get(
    `${select} WHERE folded_code = $1 ORDER BY confirmed_at IS NULL, code <> $2, id LIMIT 1`,
    mirroredFrom,
  );
  const provisionalByCode = sql.get(
    `${select} WHERE folded_code = $1 AND confirmed_at IS NULL ORDER BY id LIMIT 1`,
    mirroredFrom,
  );
  const listed = sql.list({ select: columnList, from: 'mirrored_coupon', key: ['id'] }, mirroredFrom);
  const conditionsOf = (filter: CouponFilter = {}) =>
    couponConditions('mirrored_coupon', defaultAccountId, filter);
  return {
    get: sql.get(`${select} WHERE id = ${couponIdNow(sql.engine, '$1')}`, mirroredFrom),
    byCode: (code) => byCode(foldCouponCode(code), code),
    provisionalByCode: (code) => provisionalByCode(foldCouponCode(code)),
    list: (page, filter) => listed.list(conditionsOf(filter), page),
    count: (filter) => listed.count(conditionsOf(filter)),
    shownIds: sql.column('SELECT id FROM mirrored_coupon WHERE id > 0 ORDER BY id'),
    redeemedIds: sql.column('SELECT coupon_id FROM redemption_count WHERE coupon_id > 0 AND count > 0'),
    aliases: sql.all(
      'SELECT -id AS "provisionalId", real_id AS id FROM provisional_coupon WHERE real_id IS NOT NULL',
    ),
  };
}

export function mirrorTable(sql: SqliteSql): MirrorTable {
  const put = sql.run(`${coupon.insert('mirrored_coupon', 'confirmed_at')}
     ON CONFLICT (id) DO UPDATE SET ${coupon.set(['id'])}, confirmed_at = excluded.confirmed_at`);
  const addProvisional = sql.insert('INSERT INTO provisional_coupon (real_id) VALUES (NULL)');
  // A date of 0 says that the upstream must be asked first.
  const shiftDates = sql.run(`UPDATE mirrored_coupon SET confirmed_at = max(0, confirmed_at - $1)
     WHERE confirmed_at > coalesce($2, 0) AND ($3 IS NULL OR confirmed_at <= $3)`);
  return {
    ...mirrorReads(sql),
    shiftDates: ({ byMs, after, until = null }) => shiftDates(byMs, after, until),
    put: ({ coupon: mirrored, confirmedAt }) => put(...couponValues(mirrored.id, mirrored), confirmedAt),
    remove: sql.run('DELETE FROM mirrored_coupon WHERE id = $1'),
    provisionalId: () => -addProvisional(),
    alias: sql.run('UPDATE provisional_coupon SET real_id = $2 WHERE id = -$1'),
    removeAliases: sql.run('UPDATE provisional_coupon SET real_id = NULL WHERE real_id IS NOT NULL'),
    removeShown: sql.run('DELETE FROM mirrored_coupon WHERE id > 0'),
    ageShown: sql.run('UPDATE mirrored_coupon SET confirmed_at = $1 WHERE id > 0 AND confirmed_at > $1'),
  };
}
