import type { FollowReads, FollowState, FollowTable } from '../../../service/agent/tables.ts';
import type { Push, PushReads, PushTable } from '../../../service/outbox/tables.ts';
import { bit, type Bit, type Prepare } from '../statements.ts';

export function pushReads(prepare: Prepare): PushReads {
  const get = prepare.query(
    'SELECT seq, answered AS isAnswered, body, epoch, changed_at AS changedAt FROM push WHERE product_key = ?',
    (row: Omit<Push, 'isAnswered'> & { isAnswered: Bit }): Push => ({
      ...row,
      isAnswered: row.isAnswered === 1,
    }),
  );
  return { get: (productId) => get.first(productId) };
}

export function pushTable(prepare: Prepare): PushTable {
  const put = prepare.change(`INSERT INTO push (product_key, seq, answered, body, epoch, changed_at)
     VALUES (:productId, :seq, :answered, :body, :epoch, :changedAt)
     ON CONFLICT (product_key) DO UPDATE SET seq = excluded.seq, answered = excluded.answered, body = excluded.body,
       epoch = excluded.epoch, changed_at = excluded.changed_at`);
  const restart = prepare.change('UPDATE push SET seq = 0, answered = 1, body = NULL');
  const removeAll = prepare.change('DELETE FROM push');
  return {
    ...pushReads(prepare),
    put: (productId, { isAnswered, ...push }) => void put({ productId, answered: bit(isAnswered), ...push }),
    restart: () => void restart({}),
    removeAll: () => void removeAll({}),
  };
}

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
  return {
    ...followReads(prepare),
    put: (productId, state) => void put({ productId, ...state }),
    removeAll: () => void removeAll({}),
  };
}
