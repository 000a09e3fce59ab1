import type { Operation, OperationState, UnfinishedState } from '../../../domain/outbox/operation.ts';
import { bit, type Prepare, afterNumber } from '../statements.ts';
import { columnsOf, operationFrom, select } from './operation-row.ts';
import type { Backlog } from '../../../domain/agent/license-snapshot.ts';
import type { QueueReads, OperationReads, OperationTable, QueueKey } from '../../../service/outbox/tables.ts';

/** Exactly the condition of the index `outbox_queue`; otherwise SQLite could not use the index. */
const isUnfinished: string = "(state = 'pending' OR state = 'in_flight' OR state = 'uncertain')";

/** The unfinished operations of a queue. Parameters: subject, queue. */
const inQueue: string = `${select} WHERE subject = ? AND queue = ? AND ${isUnfinished}`;

const emptyBacklog: Backlog = { usages: 0, decreases: 0, disables: 0, unfinished: 0 };

function queueReads(prepare: Prepare): QueueReads {
  const isBusy = prepare.count(
    `SELECT EXISTS (SELECT 1 FROM outbox WHERE subject = ? AND queue = ? AND ${isUnfinished} AND held = 0) AS count`,
  );
  const reconcileAt = prepare.column<number | null>(
    `SELECT max(reconcile_at) FROM outbox
     WHERE subject = ? AND queue = ? AND reconcile_at > ? AND (? = 0 OR kind <> 'disable')`,
  );
  const backlog = prepare.query<Backlog>(
    'SELECT usages, decreases, disables, unfinished FROM outbox_backlog WHERE subject = ?',
  );
  const dead = prepare.query(
    `${select} WHERE subject = ? AND state IN ('conflicted', 'dead') ORDER BY seq`,
    operationFrom,
  );
  const held = prepare.query(`${inQueue} AND held = 1 ORDER BY seq`, operationFrom);
  return {
    head: prepare.query(`${inQueue} AND held = 0 ORDER BY seq LIMIT 1`, operationFrom).first,
    isIdle: (subject, queue) => isBusy(subject, queue) === 0,
    tail: prepare.query(`${inQueue} ORDER BY seq DESC LIMIT 1`, operationFrom).first,
    uncertain: prepare.query(
      `${select} WHERE subject = ? AND queue = ? AND state = 'uncertain' AND held = 0 ORDER BY seq`,
      operationFrom,
    ).all,
    reconcileAt: (subject, queue, now, asDisable) => reconcileAt.first(subject, queue, now, bit(asDisable)),
    backlog: (licenseKey) => backlog.first(licenseKey) ?? emptyBacklog,
    shown: prepare.query(
      `${select} WHERE subject = ?1 AND queue IN ('counter', 'state') AND ${isUnfinished}
     UNION ALL
     ${select} WHERE subject = ?1 AND kind = 'disable' AND state IN ('conflicted', 'dead')
     ORDER BY seq`,
      operationFrom,
    ).all,
    held: (subject, queue) => held.all(subject, queue),
    dead: (subject) => dead.all(subject),
  };
}

/**
 * SQL for a page of operations, sorted by `seq`. `parts`: FROM clauses, each of which reads an index in order. `at`: the
 * number of the first of three parameters: the `seq` before the page, limit and offset. The inner query selects only
 * `seq`, so that an index can skip rows: an outbox may hold a million.
 */
function pageOfOperations(parts: readonly string[], at: number): string {
  const seqs = parts.map((part) => `SELECT seq ${part} AND seq > ?${at}`).join(' UNION ALL ');
  return `${select} WHERE seq IN (${seqs} ORDER BY seq LIMIT ?${at + 1} OFFSET ?${at + 2}) ORDER BY seq`;
}

/** The open operations of a license key, in pages, because one key may have as many as the outbox holds. */
function openReads(prepare: Prepare): Pick<OperationReads, 'openOf' | 'countOpenOf'> {
  // Without this condition, SQLite would read every unfinished row to find no dead row among them.
  const unfinished = `${isUnfinished} AND (?2 IS NULL OR ?2 NOT IN ('conflicted', 'dead'))`;
  const parts = [
    `queue = 'counter' AND ${unfinished}`,
    `queue = 'state' AND ${unfinished}`,
    "queue IN ('counter', 'state') AND state IN ('conflicted', 'dead')",
  ].map((part) => `FROM outbox WHERE subject = ?1 AND ${part} AND (?2 IS NULL OR state = ?2)`);
  const list = prepare.query(pageOfOperations(parts, 3), operationFrom);
  return {
    openOf: (licenseKey, state, page) =>
      list.all(licenseKey, state, afterNumber(page), page.limit, page.offset),
    countOpenOf: prepare.count(
      `SELECT ${parts.map((part) => `(SELECT count(*) ${part})`).join(' + ')} AS count`,
    ),
  };
}

const unfinishedStates: readonly UnfinishedState[] = ['pending', 'in_flight', 'uncertain'];
const openStates: readonly OperationState[] = [...unfinishedStates, 'conflicted', 'dead'];

/** Every read uses an index, because the outbox may be long. */
export function operationReads(prepare: Prepare): OperationReads {
  const open = prepare.query(
    pageOfOperations(
      openStates.map((state) => `FROM outbox WHERE state = '${state}'`),
      1,
    ),
    operationFrom,
  );
  const lastSeq = prepare.column<number>('SELECT seq FROM outbox ORDER BY seq DESC LIMIT 1');
  const inState = prepare.query(pageOfOperations(['FROM outbox WHERE state = ?1'], 2), operationFrom);
  // Every change runs this statement. For a sum over `IN`, SQLite would fill a temporary table each time.
  const unfinished = prepare.count(
    `SELECT ${unfinishedStates.map((state) => `(SELECT count FROM outbox_count WHERE state = '${state}')`).join(' + ')} AS count`,
  );
  const depth = prepare.query(
    'SELECT state, count FROM outbox_count',
    (row: { state: OperationState; count: number }) => [row.state, row.count] as const,
  );
  // A bounded read: a million operations of other products may have finished since.
  const lastCarriedOut = prepare.column<string>(
    `SELECT id FROM (SELECT * FROM outbox WHERE finished_at IS NOT NULL ORDER BY finished_at DESC LIMIT 100)
     WHERE state = 'delivered' AND queue = 'counter' AND product_key = ? AND upstream = ? AND finished_at >= ?
     ORDER BY finished_at DESC LIMIT 1`,
  );
  const firstIn = prepare.column<number>(
    'SELECT created_at FROM outbox WHERE state = ? ORDER BY seq LIMIT 1',
  );
  return {
    get: prepare.query(`${select} WHERE id = ?`, operationFrom).first,
    list: (state, page) => {
      const window = [afterNumber(page), page.limit, page.offset];
      return state === null ? open.all(...window) : inState.all(state, ...window);
    },
    // The table has one row for each state.
    depth: () => Object.fromEntries(depth.all()) as Record<OperationState, number>,
    lastSeq: () => lastSeq.first() ?? 0,
    unfinished: () => unfinished(),
    heldCount: prepare.count('SELECT count(*) AS count FROM outbox WHERE held = 1'),
    unfinishedOf: prepare.count(`SELECT count(*) AS count FROM outbox
     WHERE product_key = ? AND ${isUnfinished}`),
    lastCarriedOut: (...query) => lastCarriedOut.first(...query),
    oldestAt() {
      const firsts = unfinishedStates.flatMap((state) => firstIn.first(state) ?? []);
      return firsts.length === 0 ? null : Math.min(...firsts);
    },
    ...queueReads(prepare),
    ...openReads(prepare),
    ...waitReads(prepare),
  };
}

export function operationTable(prepare: Prepare): OperationTable {
  const withState = prepare.query(
    `${select} WHERE state = ? AND seq > ? ORDER BY seq LIMIT ${pageSize}`,
    operationFrom,
  );
  const clearSeenRevisions = prepare.change(
    'UPDATE outbox SET seen_revision = 0 WHERE seen_revision IS NOT NULL',
  );
  return {
    ...operationReads(prepare),
    ...singleChanges(prepare),
    ...sweepingChanges(prepare),
    ...waitChanges(prepare),
    queue: prepare.query(`${inQueue} AND held = 0 ORDER BY seq`, operationFrom).all,
    withState: (state) => inPages((seq) => withState.all(state, seq)),
    uncertainElsewhere: prepare.query(
      `${select} WHERE (state = 'uncertain' OR (state = 'pending' AND (maybe_applied = 1 OR unanswered = 1)))
       AND held = 0 AND upstream <> ? ORDER BY seq`,
      operationFrom,
    ).all,
    // Without the index of states, which would find and sort all operations again for each batch.
    deliveredAfter: prepare.query(
      `${select} WHERE seq > ? AND seq <= ? AND +state IN ('delivered', 'inferred') AND upstream = ?
       ORDER BY seq LIMIT ?`,
      operationFrom,
    ).all,
    clearSeenRevisions: () => void clearSeenRevisions({}),
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

function singleChanges(prepare: Prepare): Pick<OperationTable, 'add' | 'put' | 'schedule'> {
  const add =
    prepare.change(`INSERT INTO outbox (id, kind, subject, queue, product_key, state, maybe_applied, unanswered, held, base_uses, sent_at,
       attempts, failures, next_at, outage, reconcile_at, upstream, last_error, seen_enabled, seen_revision, payload,
       created_at, credential, request_id, finished_at, cause)
     VALUES (:id, :kind, :subject, :queue, :productId, :state, :maybeApplied, :unanswered, :held, :baseUses, :sentAt,
       :attempts, :failures, :nextAt, :outage, :reconcileAt, :upstream, :lastError, :seenEnabled, :seenRevision, :payload,
       :createdAt, :credential, :requestId, :finishedAt, :cause)`);
  const put =
    prepare.change(`UPDATE outbox SET state = :state, maybe_applied = :maybeApplied, unanswered = :unanswered, held = :held, base_uses = :baseUses,
       cause = :cause, sent_at = :sentAt, attempts = :attempts, failures = :failures, next_at = :nextAt,
       outage = :outage, reconcile_at = :reconcileAt, upstream = :upstream, last_error = :lastError,
       seen_enabled = :seenEnabled, seen_revision = :seenRevision, payload = :payload, finished_at = :finishedAt
     WHERE seq = :seq AND id = :id`);
  // SQLite rewrites the index of each column that is set, even to the same value, so this statement sets few columns.
  const schedule =
    prepare.change(`UPDATE outbox SET next_at = :nextAt, outage = :outage, failures = :failures, last_error = :lastError
     WHERE seq = :seq`);
  return {
    add: (operation) => ({ ...operation, seq: add(columnsOf(operation)).rowId }),
    put(operation) {
      if (put(columnsOf(operation)).changes !== 1) throw new Error(`there is no operation ${operation.id}`);
    },
    schedule: (operation) => schedule(columnsOf(operation)),
  };
}

/** Changes of many operations. Each uses an index that has only these operations. */
function sweepingChanges(prepare: Prepare): Pick<OperationTable, 'moveToSubject' | 'clampToNow' | 'prune'> {
  // Finished operations without a reconcile delay stay under the old key.
  const moves = [isUnfinished, "state IN ('conflicted', 'dead')", 'reconcile_at IS NOT NULL'].map((which) =>
    prepare.change(
      `UPDATE outbox SET subject = :to, next_at = NULL, outage = 0
       WHERE subject = :from AND queue IN ('counter', 'state') AND ${which}`,
    ),
  );
  const stopWaiting = prepare.change(`UPDATE outbox SET next_at = NULL, outage = 0
     WHERE subject = :to AND queue IN ('counter', 'state') AND ${isUnfinished}`);
  const clampToNow = prepare.change(`UPDATE outbox SET finished_at = :now WHERE seq IN
       (SELECT seq FROM outbox WHERE finished_at > :now LIMIT :limit)`);
  const prune = prepare.change(`DELETE FROM outbox WHERE seq IN
       (SELECT seq FROM outbox WHERE finished_at < :finishedBefore ORDER BY finished_at LIMIT :limit)`);
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
function waitReads(prepare: Prepare): Pick<OperationReads, 'due' | 'nextDueAt'> {
  const first = prepare.query(
    `${waitingProducts}
     SELECT productId, (SELECT min(next_at) FROM outbox WHERE product_key = productId AND next_at IS NOT NULL) AS nextAt
     FROM waiting WHERE productId IS NOT NULL`,
    (row: { productId: string; nextAt: number }) => row,
  );
  const due = prepare.query(
    `SELECT subject, queue, product_key AS productId, next_at AS nextAt FROM outbox
     WHERE product_key IS ? AND next_at <= ? ORDER BY next_at LIMIT ?`,
    (row: QueueKey & { nextAt: number }) => row,
  );
  /** The products with the earliest due operations. */
  const dueProducts = (now: number, limit: number, isAsked: (productId: string) => boolean): string[] =>
    first
      .all()
      .filter(({ productId, nextAt }) => nextAt <= now && isAsked(productId))
      .sort((one, other) => one.nextAt - other.nextAt)
      .slice(0, limit)
      .map(({ productId }) => productId);
  return {
    due: (now, limit, isAsked) =>
      [...(isAsked(null) ? [null] : []), ...dueProducts(now, limit, isAsked)]
        .flatMap((productId) => due.all(productId, now, limit))
        .sort((one, other) => one.nextAt - other.nextAt)
        .slice(0, limit)
        .map(({ subject, queue, productId }) => ({ subject, queue, productId })),
    nextDueAt: prepare.column<number | null>(`${waitingProducts}
     SELECT min((SELECT min(next_at) FROM outbox WHERE product_key IS productId AND next_at > ?)) AS nextAt
     FROM waiting`).first,
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
  prepare: Prepare,
): Pick<OperationTable, 'endOutage' | 'endBackoff' | 'shiftWaits' | 'extendReconcileDelays'> {
  const endOutage = prepare.change(
    'UPDATE outbox SET next_at = min(next_at, :now), outage = 0 WHERE outage = 1',
  );
  const endBackoff = prepare.change(`UPDATE outbox SET outage = 0, next_at = max(:now, coalesce(
         (SELECT max(other.reconcile_at) FROM outbox AS other
          WHERE other.subject = outbox.subject AND other.queue = outbox.queue AND other.reconcile_at > :now), 0))
     WHERE next_at > :now`);
  const shiftWaits = prepare.change('UPDATE outbox SET next_at = next_at + :byMs WHERE next_at IS NOT NULL');
  const shiftReconcileDelays = prepare.change(
    'UPDATE outbox INDEXED BY outbox_reconcile SET reconcile_at = reconcile_at + :byMs WHERE reconcile_at IS NOT NULL',
  );
  const extendReconcileDelays = prepare.change(
    'UPDATE outbox INDEXED BY outbox_reconcile SET reconcile_at = :until WHERE reconcile_at > :reached',
  );
  return {
    endOutage: (now) => endOutage({ now }),
    endBackoff: (now) => endBackoff({ now }),
    shiftWaits(byMs) {
      shiftWaits({ byMs });
      shiftReconcileDelays({ byMs });
    },
    extendReconcileDelays: (reached, until) => extendReconcileDelays({ reached, until }),
  };
}
