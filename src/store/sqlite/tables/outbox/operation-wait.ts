import type { DatabaseSync } from 'node:sqlite';
import type { QueueKey, OperationReads, OperationTable } from '../../../../service/outbox/tables.ts';
import { prepareChange, prepareQuery } from '../../statements.ts';

/** Reads product by product, so that a million waiting queues of a paused product are not even looked at. */
export function waitReads(database: DatabaseSync): Pick<OperationReads, 'due' | 'nextDueAt'> {
  const first = prepareQuery(
    database,
    `${waitingProducts}
     SELECT productKey, (SELECT min(next_at) FROM outbox WHERE product_key = productKey AND next_at IS NOT NULL) AS nextAt
     FROM waiting WHERE productKey IS NOT NULL`,
    (row: { productKey: string; nextAt: number }) => row,
  );
  const due = prepareQuery(
    database,
    `SELECT subject, queue, product_key AS productKey, next_at AS nextAt FROM outbox
     WHERE product_key IS ? AND next_at <= ? ORDER BY next_at LIMIT ?`,
    (row: QueueKey & { nextAt: number }) => row,
  );
  const next = prepareQuery(
    database,
    `${waitingProducts}
     SELECT min((SELECT min(next_at) FROM outbox WHERE product_key IS productKey AND next_at > ?)) AS nextAt
     FROM waiting`,
    (row: { nextAt: number | null }) => row.nextAt,
  );
  /** Those of few products: none of the others has one that has been due for longer. */
  const dueProducts = (now: number, limit: number, isAsked: (productKey: string) => boolean): string[] =>
    first
      .all()
      .filter(({ productKey, nextAt }) => nextAt <= now && isAsked(productKey))
      .sort((one, other) => one.nextAt - other.nextAt)
      .slice(0, limit)
      .map(({ productKey }) => productKey);
  return {
    due: (now, limit, isAsked) =>
      [...(isAsked(null) ? [null] : []), ...dueProducts(now, limit, isAsked)]
        .flatMap((productKey) => due.all(productKey, now, limit))
        .sort((one, other) => one.nextAt - other.nextAt)
        .slice(0, limit)
        .map(({ subject, queue, productKey }) => ({ subject, queue, productKey })),
    nextDueAt: (now) => next.first(now),
  };
}

/** In SQL, the products with waiting queues, found by a jump through the index for each; null, last, stands for none. */
const waitingProducts = `WITH RECURSIVE waiting (productKey) AS (
   SELECT min(product_key) FROM outbox WHERE next_at IS NOT NULL AND product_key > ''
   UNION ALL
   SELECT (SELECT min(product_key) FROM outbox WHERE next_at IS NOT NULL AND product_key > productKey)
   FROM waiting WHERE productKey IS NOT NULL
 )`;

/** The least of those that are there. */
export function least(values: readonly (number | null)[]): number | null {
  const numbers = values.filter((value) => value !== null);
  return numbers.length === 0 ? null : Math.min(...numbers);
}

/** Prepares what ends, moves or lengthens the waits of as many queues as there are. */
export function waitChanges(
  database: DatabaseSync,
): Pick<OperationTable, 'endOutage' | 'endBackoff' | 'shiftWaits' | 'extendReconcileDelays'> {
  const endOutage = prepareChange(
    database,
    'UPDATE outbox SET next_at = min(next_at, :now), outage = 0 WHERE outage = 1',
  );
  const endBackoff = prepareChange(
    database,
    `UPDATE outbox SET outage = 0, next_at = max(:now, coalesce(
         (SELECT max(other.reconcile_at) FROM outbox AS other
          WHERE other.subject = outbox.subject AND other.queue = outbox.queue AND other.reconcile_at > :now), 0))
     WHERE next_at > :now`,
  );
  const shiftWaits = prepareChange(
    database,
    'UPDATE outbox SET next_at = next_at + :byMs WHERE next_at IS NOT NULL',
  );
  const shiftReconcileDelays = prepareChange(
    database,
    'UPDATE outbox INDEXED BY outbox_reconcile SET reconcile_at = reconcile_at + :byMs WHERE reconcile_at IS NOT NULL',
  );
  const extendReconcileDelays = prepareChange(
    database,
    'UPDATE outbox INDEXED BY outbox_reconcile SET reconcile_at = :until WHERE reconcile_at > :reached',
  );
  return {
    endOutage(now) {
      endOutage({ now });
    },
    endBackoff(now) {
      endBackoff({ now });
    },
    shiftWaits(byMs) {
      shiftWaits({ byMs });
      shiftReconcileDelays({ byMs });
    },
    extendReconcileDelays(reached, until) {
      extendReconcileDelays({ reached, until });
    },
  };
}
