import type { DatabaseSync } from 'node:sqlite';
import type { Operation, OperationState, UnfinishedState } from '../../../../domain/outbox/operation.ts';
import type { OperationReads, OperationTable, QueueKey } from '../../../../service/outbox/tables.ts';
import { afterNumber } from '../cursor.ts';
import { deliveryColumns, identityColumns, operationColumns, operationFrom } from './operation-row.ts';
import { inQueue, isUnfinished, queueReads, openReads, pageOfOperations } from './operation-queue.ts';
import { bit, prepareChange, prepareCount, prepareQuery } from '../../statements.ts';

const select = `SELECT ${operationColumns} FROM outbox`;
const openStates = ['pending', 'in_flight', 'uncertain', 'conflicted', 'dead'] as const;

/** Every read uses an index, because the outbox may be long. */
export function operationReads(database: DatabaseSync): OperationReads {
  const get = prepareQuery(database, `${select} WHERE id = ?`, operationFrom);
  const open = prepareQuery(
    database,
    pageOfOperations(
      openStates.map((state) => `FROM outbox WHERE state = '${state}'`),
      1,
    ),
    operationFrom,
  );
  const lastSeq = prepareQuery(
    database,
    'SELECT seq FROM outbox ORDER BY seq DESC LIMIT 1',
    (row: { seq: number }) => row.seq,
  );
  const inState = prepareQuery(
    database,
    pageOfOperations(['FROM outbox WHERE state = ?1'], 2),
    operationFrom,
  );
  // Every change runs this statement. For a sum over `IN`, SQLite would fill a temporary table each time.
  const unfinished = prepareCount(
    database,
    `SELECT ${depthOf('pending')} + ${depthOf('in_flight')} + ${depthOf('uncertain')} AS count`,
  );
  const held = prepareCount(database, 'SELECT count(*) AS count FROM outbox WHERE held = 1');
  const ofProduct = prepareCount(
    database,
    `SELECT count(*) AS count FROM outbox
     WHERE product_key = ? AND ${isUnfinished}`,
  );
  return {
    get: (id) => get.first(id),
    list: (state, page) => {
      const window = [afterNumber(page), page.limit, page.offset];
      return state === null ? open.all(...window) : inState.all(state, ...window);
    },
    depth: depthRead(database),
    lastSeq: () => lastSeq.first() ?? 0,
    unfinished: () => unfinished(),
    heldCount: () => held(),
    unfinishedOf: (productKey) => ofProduct(productKey),
    oldestAt: oldestRead(database),
    ...queueReads(database),
    ...openReads(database),
    ...waitReads(database),
  };
}

function depthOf(state: UnfinishedState): string {
  return `(SELECT count FROM outbox_count WHERE state = '${state}')`;
}

function depthRead(database: DatabaseSync): OperationReads['depth'] {
  const query = prepareQuery(
    database,
    'SELECT state, count FROM outbox_count',
    (row: { state: OperationState; count: number }) => [row.state, row.count] as const,
  );
  // The table has one row for each state.
  return () => Object.fromEntries(query.all()) as Record<OperationState, number>;
}

function oldestRead(database: DatabaseSync): OperationReads['oldestAt'] {
  const query = prepareQuery(
    database,
    'SELECT created_at AS createdAt FROM outbox WHERE state = ? ORDER BY seq LIMIT 1',
    (row: { createdAt: number }) => row.createdAt,
  );
  return () => {
    const firsts = [query.first('pending'), query.first('in_flight'), query.first('uncertain')];
    return minimum(firsts);
  };
}

export function operationTable(database: DatabaseSync): OperationTable {
  const queue = prepareQuery(database, `${inQueue} AND held = 0 ORDER BY seq`, operationFrom);
  const withState = prepareQuery(
    database,
    `${select} WHERE state = ? AND seq > ? ORDER BY seq LIMIT ${pageSize}`,
    operationFrom,
  );
  const elsewhere = prepareQuery(
    database,
    `${select} WHERE (state = 'uncertain' OR (state = 'pending' AND maybe_applied = 1))
       AND held = 0 AND upstream <> ? ORDER BY seq`,
    operationFrom,
  );
  return {
    ...operationReads(database),
    ...singleChanges(database),
    ...sweepingChanges(database),
    ...waitChanges(database),
    queue: (subject, name) => queue.all(subject, name),
    withState: (state) => inPages((seq) => withState.all(state, seq)),
    uncertainElsewhere: (upstream) => elsewhere.all(upstream),
  };
}

/** Read in pages, because there may be a million operations. */
const pageSize = 1_000;

function* inPages(after: (seq: number) => Operation[]): Iterable<Operation> {
  let page = after(0);
  while (page.length > 0) {
    yield* page;
    page = after(page.at(-1)?.seq ?? Infinity);
  }
}

function singleChanges(database: DatabaseSync): Pick<OperationTable, 'add' | 'put' | 'schedule'> {
  const add = prepareChange(
    database,
    `INSERT INTO outbox (id, kind, subject, queue, product_key, state, maybe_applied, held, base_uses, sent_at,
       attempts, failures, next_at, outage, reconcile_at, upstream, last_error, seen_enabled, payload,
       created_at, credential, request_id, finished_at, cause)
     VALUES (:id, :kind, :subject, :queue, :productKey, :state, :doubtful, :held, :baseUses, :sentAt,
       :attempts, :failures, :nextAt, :outage, :reconcileAt, :upstream, :lastError, :seenEnabled, :payload,
       :createdAt, :credential, :requestId, :finishedAt, :cause)`,
  );
  const put = prepareChange(
    database,
    `UPDATE outbox SET state = :state, maybe_applied = :doubtful, held = :held, base_uses = :baseUses,
       cause = :cause, sent_at = :sentAt, attempts = :attempts, failures = :failures, next_at = :nextAt,
       outage = :outage, reconcile_at = :reconcileAt, upstream = :upstream, last_error = :lastError,
       seen_enabled = :seenEnabled, payload = :payload, finished_at = :finishedAt
     WHERE seq = :seq AND id = :id`,
  );
  // SQLite rewrites the index of each column that is set, even to the same value, so this statement sets few columns.
  const schedule = prepareChange(
    database,
    `UPDATE outbox SET next_at = :nextAt, outage = :outage, failures = :failures, last_error = :lastError
     WHERE seq = :seq`,
  );
  return {
    add(operation) {
      const { rowId: seq } = add({ ...identityColumns(operation), ...deliveryColumns(operation) });
      return { ...operation, seq };
    },
    put(operation) {
      const { seq, id } = operation;
      const { changes } = put({ seq, id, ...deliveryColumns(operation) });
      if (changes !== 1) throw new Error(`there is no operation ${id}`);
    },
    schedule({ seq, nextAt, outage, failures, lastError }) {
      schedule({ seq, nextAt, outage: bit(outage), failures, lastError });
    },
  };
}

/** Changes of many operations. Each uses an index that has only these operations. */
function sweepingChanges(
  database: DatabaseSync,
): Pick<OperationTable, 'moveToSubject' | 'clampToNow' | 'prune'> {
  // Finished operations without a reconcile delay stay under the old key.
  const moves = [isUnfinished, "state IN ('conflicted', 'dead')", 'reconcile_at IS NOT NULL'].map((which) =>
    prepareChange(
      database,
      `UPDATE outbox SET subject = :to, next_at = NULL, outage = 0 WHERE subject = :from AND ${which}`,
    ),
  );
  const stopWaiting = prepareChange(
    database,
    `UPDATE outbox SET next_at = NULL, outage = 0
     WHERE subject = :to AND ${isUnfinished}`,
  );
  const clampToNow = prepareChange(
    database,
    `UPDATE outbox SET finished_at = :now WHERE seq IN
       (SELECT seq FROM outbox WHERE finished_at > :now LIMIT :limit)`,
  );
  const prune = prepareChange(
    database,
    `DELETE FROM outbox WHERE seq IN
       (SELECT seq FROM outbox WHERE finished_at < :finishedBefore ORDER BY finished_at LIMIT :limit)`,
  );
  return {
    moveToSubject(from, to) {
      for (const move of moves) move({ from, to });
      stopWaiting({ to });
    },
    clampToNow: (now, limit) => clampToNow({ now, limit }).changes,
    prune: (finishedBefore, limit) => prune({ finishedBefore, limit }).changes,
  };
}

/** Reads by product, so as to skip a million waiting queues of a paused product. */
function waitReads(database: DatabaseSync): Pick<OperationReads, 'due' | 'nextDueAt'> {
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
  /** The products with the earliest due operations. */
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

/** SQL for the products with waiting queues, each found with one jump through the index. The last row is null. */
const waitingProducts = `WITH RECURSIVE waiting (productKey) AS (
   SELECT min(product_key) FROM outbox WHERE next_at IS NOT NULL AND product_key > ''
   UNION ALL
   SELECT (SELECT min(product_key) FROM outbox WHERE next_at IS NOT NULL AND product_key > productKey)
   FROM waiting WHERE productKey IS NOT NULL
 )`;

function minimum(values: readonly (number | null)[]): number | null {
  const numbers = values.filter((value) => value !== null);
  return numbers.length === 0 ? null : Math.min(...numbers);
}

function waitChanges(
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
