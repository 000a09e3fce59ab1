import type { DatabaseSync } from 'node:sqlite';
import type { LaneKey, OperationReads, OperationTable } from '../../../../service/outbox/tables.ts';
import { prepareChange, prepareQuery, type Query } from '../../statements.ts';

/** Reads product by product, so that a million waiting lanes of a paused product are not even looked at. */
export function waitReads(database: DatabaseSync): Pick<OperationReads, 'due' | 'nextDueAt'> {
  const waiting = waitingProducts(database);
  const due = prepareQuery(
    database,
    `SELECT subject, lane, product_key AS productKey, next_at AS nextAt FROM outbox
     WHERE product_key IS ? AND next_at <= ? ORDER BY next_at LIMIT ?`,
    (row: LaneKey & { nextAt: number }) => row,
  );
  const next = prepareQuery(
    database,
    `SELECT next_at AS nextAt FROM outbox WHERE product_key IS ? AND next_at > ? ORDER BY next_at LIMIT 1`,
    (row: { nextAt: number }) => row.nextAt,
  );
  return {
    due: (now, limit, isAsked) =>
      [null, ...waiting.all()]
        .filter(isAsked)
        .flatMap((productKey) => due.all(productKey, now, limit))
        .sort((one, other) => one.nextAt - other.nextAt)
        .slice(0, limit)
        .map(({ subject, lane, productKey }) => ({ subject, lane, productKey })),
    nextDueAt: (now) => least([null, ...waiting.all()].map((productKey) => next.first(productKey, now))),
  };
}

/** The products with waiting lanes, found by a jump through the index for each. */
function waitingProducts(database: DatabaseSync): Query<string> {
  return prepareQuery(
    database,
    `WITH RECURSIVE waiting (productKey) AS (
       SELECT min(product_key) FROM outbox WHERE next_at IS NOT NULL AND product_key > ''
       UNION ALL
       SELECT (SELECT min(product_key) FROM outbox WHERE next_at IS NOT NULL AND product_key > productKey)
       FROM waiting WHERE productKey IS NOT NULL
     )
     SELECT productKey FROM waiting WHERE productKey IS NOT NULL`,
    (row: { productKey: string }) => row.productKey,
  );
}

/** The least of those that are there. */
export function least(values: readonly (number | null)[]): number | null {
  const numbers = values.filter((value) => value !== null);
  return numbers.length === 0 ? null : Math.min(...numbers);
}

/** Prepares what ends, moves or lengthens the waits of as many lanes as there are. */
export function waitChanges(
  database: DatabaseSync,
): Pick<OperationTable, 'endOutage' | 'endBackoff' | 'shiftWaits' | 'extendFences'> {
  const endOutage = prepareChange(
    database,
    'UPDATE outbox SET next_at = min(next_at, :now), outage = 0 WHERE outage = 1',
  );
  const endBackoff = prepareChange(
    database,
    `UPDATE outbox SET outage = 0, next_at = max(:now, coalesce(
         (SELECT max(other.fenced_until) FROM outbox AS other
          WHERE other.subject = outbox.subject AND other.lane = outbox.lane AND other.fenced_until > :now), 0))
     WHERE next_at > :now`,
  );
  const shiftWaits = prepareChange(
    database,
    'UPDATE outbox SET next_at = next_at + :byMs WHERE next_at IS NOT NULL',
  );
  const shiftFences = prepareChange(
    database,
    'UPDATE outbox INDEXED BY outbox_fenced SET fenced_until = fenced_until + :byMs WHERE fenced_until IS NOT NULL',
  );
  const extendFences = prepareChange(
    database,
    'UPDATE outbox INDEXED BY outbox_fenced SET fenced_until = :until WHERE fenced_until > :reached',
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
      shiftFences({ byMs });
    },
    extendFences(reached, until) {
      extendFences({ reached, until });
    },
  };
}
