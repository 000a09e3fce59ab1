import type { FollowReads, FollowState, FollowTable } from '../../../service/agent/tables.ts';
import { columns } from '../../sql.ts';
import type { SqliteSql } from '../statements.ts';

const follow = columns<FollowState & { productId: string }>(
  'product_key AS productId, epoch, cursor, confirmed_at',
);

export function followReads(sql: SqliteSql): FollowReads {
  return {
    get: sql.get('SELECT epoch, cursor, confirmed_at AS "confirmedAt" FROM follow WHERE product_key = $1'),
  };
}

export function followTable(sql: SqliteSql): FollowTable {
  const put = sql.run(follow.upsert('follow', ['product_key']));
  const shiftDates = sql.run(
    `UPDATE follow SET confirmed_at = max(0, confirmed_at - $1)
     WHERE ($2 IS NULL OR confirmed_at > $2) AND ($3 IS NULL OR confirmed_at <= $3)`,
  );
  return {
    ...followReads(sql),
    shiftDates: ({ byMs, after, until = null }) => shiftDates(byMs, after, until),
    put: (productId, state) => put(...follow.values({ productId, ...state })),
    removeAll: sql.run('DELETE FROM follow'),
  };
}
