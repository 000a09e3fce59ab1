import type { Reach } from '../../../domain/sync/push.ts';
import type { FollowReads, FollowState, FollowTable } from '../../../service/agent/tables.ts';
import type {
  LostOperations,
  PrunedDay,
  Push,
  PushReads,
  PushTable,
} from '../../../service/outbox/tables.ts';
import { bit, type Bit, type Prepare } from '../statements.ts';

export function pushReads(prepare: Prepare): PushReads {
  const get = prepare.query(
    'SELECT seq, answered AS isAnswered, body, epoch FROM push WHERE product_key = ?',
    (row: Omit<Push, 'isAnswered'> & { isAnswered: Bit }): Push => ({
      ...row,
      isAnswered: row.isAnswered === 1,
    }),
  );
  const lost = prepare.query<LostOperations>(
    `SELECT operations, first_at AS firstAt, last_at AS lastAt, found_at AS foundAt
     FROM lost_push WHERE product_key = ?`,
  );
  return {
    get: (productId) => get.first(nameOf(productId)),
    lost: (productId) => lost.first(nameOf(productId)),
  };
}

/** The API key has no product. */
function nameOf(productId: Reach): string {
  return productId ?? '';
}

export function pushTable(prepare: Prepare): PushTable {
  const put = prepare.change(`INSERT INTO push (product_key, seq, answered, body, epoch)
     VALUES (:productId, :seq, :answered, :body, :epoch)
     ON CONFLICT (product_key) DO UPDATE SET seq = excluded.seq, answered = excluded.answered, body = excluded.body,
       epoch = excluded.epoch`);
  const restart = prepare.change('UPDATE push SET seq = 0, answered = 1, body = NULL');
  const removeAll = prepare.change('DELETE FROM push');
  const removePruned = prepare.change('DELETE FROM pruned_push');
  const addPruned = prepare.change(`INSERT INTO pruned_push (product_key, day, last_seq, operations)
     VALUES (:productId, :day, :lastSeq, :operations)
     ON CONFLICT (product_key, day) DO UPDATE SET last_seq = max(last_seq, excluded.last_seq),
       operations = operations + excluded.operations`);
  const takePruned = prepare.query<PrunedDay>(
    `DELETE FROM pruned_push WHERE product_key = ? AND last_seq > ?
     RETURNING day, last_seq AS lastSeq, operations`,
  );
  const addLost = prepare.change(`INSERT INTO lost_push (product_key, operations, first_at, last_at, found_at)
     VALUES (:productId, :operations, :firstAt, :lastAt, :foundAt)
     ON CONFLICT (product_key) DO UPDATE SET operations = operations + excluded.operations,
       first_at = min(first_at, excluded.first_at), last_at = max(last_at, excluded.last_at),
       found_at = excluded.found_at`);
  const forgetLost = prepare.change('DELETE FROM lost_push WHERE found_at < :foundBefore');
  const forgetPruned = prepare.change('DELETE FROM pruned_push WHERE day < :prunedBefore');
  return {
    ...pushReads(prepare),
    put: (productId, { isAnswered, ...push }) =>
      void put({ productId: nameOf(productId), answered: bit(isAnswered), ...push }),
    restart() {
      restart({});
      removePruned({});
    },
    removeAll() {
      removeAll({});
      removePruned({});
    },
    addPruned: (productId, pruned) => void addPruned({ productId: nameOf(productId), ...pruned }),
    takePruned: (productId, seq) => takePruned.all(nameOf(productId), seq),
    addLost: (productId, lost) => void addLost({ productId: nameOf(productId), ...lost }),
    forgetLosses(before) {
      forgetLost(before);
      forgetPruned(before);
    },
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
