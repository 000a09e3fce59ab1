import type { Operation, OperationState, UnfinishedState } from '../../../domain/outbox/operation.ts';
import type { Page } from '../../../domain/page.ts';
import { maxFound, type Search } from '../../../domain/search.ts';
import { isFound } from '../../tables/search.ts';
import { afterNumber, type SqliteSql } from '../statements.ts';
import { insertOperation, operationFrom, operationValues, select, updateOperation } from './operation-row.ts';
import type { Backlog } from '../../../domain/agent/license-snapshot.ts';
import type { QueueReads, OperationReads, OperationTable, QueueKey } from '../../../service/outbox/tables.ts';

/** Exactly the condition of the index `outbox_queue`; otherwise SQLite could not use the index. */
const isUnfinished: string = "(state = 'pending' OR state = 'in_flight' OR state = 'uncertain')";

/** The unfinished operations of a queue. Parameters: subject, queue. */
const inQueue: string = `${select} WHERE subject = $1 AND queue = $2 AND ${isUnfinished}`;

const emptyBacklog: Backlog = { usages: 0, decreases: 0, disables: 0, unfinished: 0 };

function queueReads(sql: SqliteSql): QueueReads {
  const isBusy = sql.exists(
    `SELECT 1 FROM outbox WHERE subject = $1 AND queue = $2 AND ${isUnfinished} AND held = 0 LIMIT 1`,
  );
  const backlog = sql.get<Backlog>(
    'SELECT usages, decreases, disables, unfinished FROM outbox_backlog WHERE subject = $1',
  );
  return {
    head: sql.get(`${inQueue} AND held = 0 ORDER BY seq LIMIT 1`, operationFrom),
    isIdle: (subject, queue) => !isBusy(subject, queue),
    tail: sql.get(`${inQueue} ORDER BY seq DESC LIMIT 1`, operationFrom),
    uncertain: sql.all(
      `${select} WHERE subject = $1 AND queue = $2 AND state = 'uncertain' AND held = 0 ORDER BY seq`,
      operationFrom,
    ),
    reconcileAt: sql.value(
      `SELECT max(reconcile_at) FROM outbox
       WHERE subject = $1 AND queue = $2 AND reconcile_at > $3 AND (NOT $4 OR kind <> 'disable')`,
    ),
    backlog: (licenseKey) => backlog(licenseKey) ?? emptyBacklog,
    visibleToCallers: sql.all(
      `${select} WHERE subject = $1 AND queue IN ('counter', 'state') AND ${isUnfinished}
     UNION ALL
     ${select} WHERE subject = $1 AND kind = 'disable' AND state IN ('conflicted', 'dead')
     ORDER BY seq`,
      operationFrom,
    ),
    held: sql.all(`${inQueue} AND held = 1 ORDER BY seq`, operationFrom),
    dead: sql.all(
      `${select} WHERE subject = $1 AND state IN ('conflicted', 'dead') ORDER BY seq`,
      operationFrom,
    ),
  };
}

/**
 * SQL for a page of operations, sorted by `seq`. `parts`: FROM clauses, each of which reads an index in order. `at`: the
 * number of the first of three parameters: the `seq` before the page, limit and offset. The inner query selects only
 * `seq`, so that an index can skip rows: an outbox may hold a million.
 */
function pageOfOperations(parts: readonly string[], at: number): string {
  const seqs = parts.map((part) => `SELECT seq ${part} AND seq > $${at}`).join(' UNION ALL ');
  return `${select} WHERE seq IN (${seqs} ORDER BY seq LIMIT $${at + 1} OFFSET $${at + 2}) ORDER BY seq`;
}

/** The open operations of a license key, in pages, because one key may have as many as the outbox holds. */
function openReads(sql: SqliteSql): Pick<OperationReads, 'openOf' | 'countOpenOf'> {
  // Without this condition, SQLite would read every unfinished row to find no dead row among them.
  const unfinished = `${isUnfinished} AND ($2 IS NULL OR $2 NOT IN ('conflicted', 'dead'))`;
  const parts = [
    `queue = 'counter' AND ${unfinished}`,
    `queue = 'state' AND ${unfinished}`,
    "queue IN ('counter', 'state') AND state IN ('conflicted', 'dead')",
  ].map((part) => `FROM outbox WHERE subject = $1 AND ${part} AND ($2 IS NULL OR state = $2)`);
  const list = sql.all(pageOfOperations(parts, 3), operationFrom);
  return {
    openOf: (licenseKey, state, page) => list(licenseKey, state, afterNumber(page), page.limit, page.offset),
    countOpenOf: sql.count(`SELECT ${parts.map((part) => `(SELECT count(*) ${part})`).join(' + ')} AS count`),
  };
}

/** Reads the operations in one state, or all that are not finished, one after the other. */
function foundReads(
  sql: SqliteSql,
  keys: Search['keys'],
): {
  list: (text: string, state: OperationState | null, page: Page) => Operation[];
  count: (text: string, state: OperationState | null) => number;
} {
  const buyer = '(SELECT buyer_email FROM license_snapshot WHERE license_key = subject)';
  const where = `WHERE ${isFound(sql.dialect, '$1', { keys, key: 'subject', others: [buyer] })}
    AND CASE WHEN $2 IS NULL THEN state NOT IN ('delivered', 'inferred', 'cancelled', 'dropped') ELSE state = $2 END`;
  const list = sql.all(`${select} ${where} AND seq > $3 ORDER BY seq LIMIT $4 OFFSET $5`, operationFrom);
  return {
    list: (text, state, page) => list(text, state, afterNumber(page), page.limit, page.offset),
    count: sql.count(`SELECT count(*) AS count FROM (SELECT 1 FROM outbox ${where} LIMIT ${maxFound + 1})`),
  };
}

const unfinishedStates: readonly UnfinishedState[] = ['pending', 'in_flight', 'uncertain'];
const openStates: readonly OperationState[] = [...unfinishedStates, 'conflicted', 'dead'];

/** Every read uses an index, because the outbox may be long. */
export function operationReads(sql: SqliteSql): OperationReads {
  const open = sql.all(
    pageOfOperations(
      openStates.map((state) => `FROM outbox WHERE state = '${state}'`),
      1,
    ),
    operationFrom,
  );
  const inState = sql.all(pageOfOperations(['FROM outbox WHERE state = $1'], 2), operationFrom);
  const found = { anywhere: foundReads(sql, 'anywhere'), shown: foundReads(sql, 'shown') };
  const depth = sql.all(
    'SELECT state, count FROM outbox_count',
    (row: { state: OperationState; count: number }) => [row.state, row.count] as const,
  );
  const firstIn = sql.value<number>('SELECT created_at FROM outbox WHERE state = $1 ORDER BY seq LIMIT 1');
  return {
    get: sql.get(`${select} WHERE id = $1`, operationFrom),
    list: (state, page) => {
      const window = [afterNumber(page), page.limit, page.offset];
      return state === null ? open(...window) : inState(state, ...window);
    },
    found: ({ keys, text }, state, page) => found[keys].list(text, state, page),
    countFound: ({ keys, text }, state) => found[keys].count(text, state),
    // The table has one row for each state.
    depth: () => Object.fromEntries(depth()) as Record<OperationState, number>,
    lastSeq: sql.count('SELECT seq FROM outbox ORDER BY seq DESC LIMIT 1'),
    // Every change runs this statement. For a sum over `IN`, SQLite would fill a temporary table each time.
    unfinished: sql.count(
      `SELECT ${unfinishedStates.map((state) => `(SELECT count FROM outbox_count WHERE state = '${state}')`).join(' + ')} AS count`,
    ),
    heldCount: sql.count('SELECT count(*) AS count FROM outbox WHERE held = 1'),
    unfinishedOf: sql.count(`SELECT count(*) AS count FROM outbox
     WHERE product_key = $1 AND ${isUnfinished}`),
    // A bounded read: a million operations of other products may have finished since.
    lastCarriedOut: sql.value<string>(
      `SELECT id FROM (SELECT * FROM outbox WHERE finished_at IS NOT NULL ORDER BY finished_at DESC LIMIT 100)
       WHERE state = 'delivered' AND queue = 'counter' AND product_key = $1 AND upstream = $2 AND finished_at >= $3
       ORDER BY finished_at DESC LIMIT 1`,
    ),
    oldestAt() {
      const firsts = unfinishedStates.flatMap((state) => firstIn(state) ?? []);
      return firsts.length === 0 ? null : Math.min(...firsts);
    },
    ...queueReads(sql),
    ...openReads(sql),
    ...waitReads(sql),
  };
}

export function operationTable(sql: SqliteSql): OperationTable {
  const withState = sql.all(
    `${select} WHERE state = $1 AND seq > $2 ORDER BY seq LIMIT ${pageSize}`,
    operationFrom,
  );
  return {
    ...operationReads(sql),
    ...singleChanges(sql),
    ...sweepingChanges(sql),
    ...waitChanges(sql),
    queue: sql.all(`${inQueue} AND held = 0 ORDER BY seq`, operationFrom),
    withState: (state) => inPages((seq) => withState(state, seq)),
    uncertainElsewhere: sql.all(
      `${select} WHERE (state = 'uncertain' OR (state = 'pending' AND (maybe_applied = 1 OR unanswered = 1)))
       AND held = 0 AND upstream <> $1 ORDER BY seq`,
      operationFrom,
    ),
    // Without the index of states, which would find and sort all operations again for each batch.
    deliveredAfter: sql.all(
      `${select} WHERE seq > $1 AND seq <= $2 AND +state IN ('delivered', 'inferred') AND upstream = $3
       ORDER BY seq LIMIT $4`,
      operationFrom,
    ),
    clearSeenRevisions: sql.run('UPDATE outbox SET seen_revision = 0 WHERE seen_revision IS NOT NULL'),
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

function singleChanges(sql: SqliteSql): Pick<OperationTable, 'add' | 'put' | 'schedule'> {
  const add = sql.insert(insertOperation);
  const put = sql.changes(updateOperation);
  // SQLite rewrites the index of each column that is set, even to the same value, so this statement sets few columns.
  const schedule = sql.run(
    'UPDATE outbox SET next_at = $2, outage = $3, failures = $4, last_error = $5 WHERE seq = $1',
  );
  return {
    add: (operation) => ({ ...operation, seq: add(...operationValues({ ...operation, seq: null })) }),
    put(operation) {
      if (put(...operationValues(operation)) !== 1) throw new Error(`there is no operation ${operation.id}`);
    },
    schedule: ({ seq, nextAt, outage, failures, lastError }) =>
      schedule(seq, nextAt, outage, failures, lastError),
  };
}

/** Changes of many operations. Each uses an index that has only these operations. */
function sweepingChanges(sql: SqliteSql): Pick<OperationTable, 'moveToSubject' | 'clampToNow' | 'prune'> {
  // Finished operations without a reconcile delay stay under the old key.
  const moves = [isUnfinished, "state IN ('conflicted', 'dead')", 'reconcile_at IS NOT NULL'].map((which) =>
    sql.run(
      `UPDATE outbox SET subject = $2, next_at = NULL, outage = 0
       WHERE subject = $1 AND queue IN ('counter', 'state') AND ${which}`,
    ),
  );
  const stopWaiting = sql.run(`UPDATE outbox SET next_at = NULL, outage = 0
     WHERE subject = $1 AND queue IN ('counter', 'state') AND ${isUnfinished}`);
  return {
    moveToSubject(from, to) {
      for (const move of moves) move(from, to);
      stopWaiting(to);
    },
    clampToNow: sql.changes(`UPDATE outbox SET finished_at = $1 WHERE seq IN
       (SELECT seq FROM outbox WHERE finished_at > $1 LIMIT $2)`),
    prune: sql.changes(`DELETE FROM outbox WHERE seq IN
       (SELECT seq FROM outbox WHERE finished_at < $1 ORDER BY finished_at LIMIT $2)`),
  };
}

/** Reads by product, so as to skip a million waiting queues of a paused product. */
function waitReads(sql: SqliteSql): Pick<OperationReads, 'due' | 'nextDueAt'> {
  const first = sql.all(
    `${waitingProducts}
     SELECT productId, (SELECT min(next_at) FROM outbox WHERE product_key = productId AND next_at IS NOT NULL) AS nextAt
     FROM waiting WHERE productId IS NOT NULL`,
    (row: { productId: string; nextAt: number }) => row,
  );
  const due = sql.all(
    `SELECT subject, queue, product_key AS productId, next_at AS nextAt FROM outbox
     WHERE product_key IS $1 AND next_at <= $2 ORDER BY next_at LIMIT $3`,
    (row: QueueKey & { nextAt: number }) => row,
  );
  /** The products with the earliest due operations. */
  const dueProducts = (now: number, limit: number, isAsked: (productId: string) => boolean): string[] =>
    first()
      .filter(({ productId, nextAt }) => nextAt <= now && isAsked(productId))
      .sort((one, other) => one.nextAt - other.nextAt)
      .slice(0, limit)
      .map(({ productId }) => productId);
  return {
    due: (now, limit, isAsked) =>
      [...(isAsked(null) ? [null] : []), ...dueProducts(now, limit, isAsked)]
        .flatMap((productId) => due(productId, now, limit))
        .sort((one, other) => one.nextAt - other.nextAt)
        .slice(0, limit)
        .map(({ subject, queue, productId }) => ({ subject, queue, productId })),
    nextDueAt: sql.value<number | null>(`${waitingProducts}
     SELECT min((SELECT min(next_at) FROM outbox WHERE product_key IS productId AND next_at > $1)) AS nextAt
     FROM waiting`),
  };
}

/** SQL for the products with waiting queues, each found with one jump through the index. The last row is null. */
const waitingProducts = `WITH RECURSIVE waiting (productId) AS (
   SELECT min(product_key) FROM outbox WHERE next_at IS NOT NULL AND product_key > ''
   UNION ALL
   SELECT (SELECT min(product_key) FROM outbox WHERE next_at IS NOT NULL AND product_key > productId)
   FROM waiting WHERE productId IS NOT NULL
 )`;

function waitChanges(
  sql: SqliteSql,
): Pick<OperationTable, 'endOutage' | 'endBackoff' | 'shiftWaits' | 'extendReconcileDelays'> {
  const shiftWaits = sql.run('UPDATE outbox SET next_at = next_at + $1 WHERE next_at IS NOT NULL');
  const shiftReconcileDelays = sql.run(
    'UPDATE outbox INDEXED BY outbox_reconcile SET reconcile_at = reconcile_at + $1 WHERE reconcile_at IS NOT NULL',
  );
  return {
    endOutage: sql.run('UPDATE outbox SET next_at = min(next_at, $1), outage = 0 WHERE outage = 1'),
    endBackoff: sql.run(`UPDATE outbox SET outage = 0, next_at = max($1, coalesce(
         (SELECT max(other.reconcile_at) FROM outbox AS other
          WHERE other.subject = outbox.subject AND other.queue = outbox.queue AND other.reconcile_at > $1), 0))
     WHERE next_at > $1`),
    shiftWaits(byMs) {
      shiftWaits(byMs);
      shiftReconcileDelays(byMs);
    },
    extendReconcileDelays: sql.run(
      'UPDATE outbox INDEXED BY outbox_reconcile SET reconcile_at = $2 WHERE reconcile_at > $1',
    ),
  };
}
