import type { FollowReads, FollowState, FollowTable } from '../../../service/agent/tables.ts';
import type { Prepare } from '../statements.ts';

export function followReads(prepare: Prepare): FollowReads {
  const get = prepare.query<FollowState>(
    'SELECT epoch, cursor, confirmed_at AS confirmedAt FROM follow WHERE product_key = ?',
  );
  return { get: (productId) => get.first(productId) };
}

export function followTable(prepare: Prepare): FollowTable {
  const put = prepare.change(`INSERT INTO follow (product_key, epoch, cursor, confirmed_at)
     VALUES (:productId, :epoch, :cursor, :confirmedAt)
     ON CONFLICT (product_key) DO UPDATE SET epoch = excluded.epoch, cursor = excluded.cursor,
       confirmed_at = excluded.confirmed_at`);
  const removeAll = prepare.change('DELETE FROM follow');
  const shiftDates = prepare.change(
    `UPDATE follow SET confirmed_at = max(0, confirmed_at - :byMs)
     WHERE (:after IS NULL OR confirmed_at > :after) AND (:until IS NULL OR confirmed_at <= :until)`,
  );
  return {
    ...followReads(prepare),
    shiftDates: (shift) => void shiftDates({ until: null, ...shift }),
    put: (productId, state) => void put({ productId, ...state }),
    removeAll: () => void removeAll({}),
  };
}
