import type { DatabaseSync } from 'node:sqlite';
import type { Backlog } from '../../../../domain/agent/license-snapshot.ts';
import type { QueueReads, OperationReads } from '../../../../service/outbox/tables.ts';
import { afterNumber } from '../cursor.ts';
import { operationColumns, operationFrom } from './operation-row.ts';
import { prepareCount, prepareQuery } from '../../statements.ts';

const select = `SELECT ${operationColumns} FROM outbox`;
/** Exactly the condition of the index `outbox_queue`; otherwise SQLite could not use the index. */
export const isUnfinished: string = "(state = 'pending' OR state = 'in_flight' OR state = 'uncertain')";

/** The unfinished operations of a queue. Parameters: subject, queue. */
export const inQueue: string = `${select} WHERE subject = ? AND queue = ? AND ${isUnfinished}`;

const emptyBacklog: Backlog = { usages: 0, decreases: 0, disables: 0, unfinished: 0 };

export function queueReads(database: DatabaseSync): QueueReads {
  const head = prepareQuery(database, `${inQueue} AND held = 0 ORDER BY seq LIMIT 1`, operationFrom);
  const isBusy = prepareCount(
    database,
    `SELECT EXISTS (SELECT 1 FROM outbox WHERE subject = ? AND queue = ? AND ${isUnfinished} AND held = 0) AS count`,
  );
  const tail = prepareQuery(database, `${inQueue} ORDER BY seq DESC LIMIT 1`, operationFrom);
  const uncertain = prepareQuery(
    database,
    `${select} WHERE subject = ? AND queue = ? AND state = 'uncertain' AND held = 0 ORDER BY seq`,
    operationFrom,
  );
  const delayed = prepareQuery(
    database,
    `SELECT max(reconcile_at) AS reconcileAt FROM outbox
     WHERE subject = ? AND queue = ? AND reconcile_at > ? AND (? = 0 OR kind <> 'disable')`,
    (row: { reconcileAt: number | null }) => row,
  );
  const backlog = prepareQuery(
    database,
    'SELECT usages, decreases, disables, unfinished FROM outbox_backlog WHERE subject = ?',
    (row: Backlog) => row,
  );
  const shown = prepareQuery(
    database,
    `${select} WHERE subject = ?1 AND queue IN ('counter', 'state') AND ${isUnfinished}
     UNION ALL
     ${select} WHERE subject = ?1 AND kind = 'disable' AND state IN ('conflicted', 'dead')
     ORDER BY seq`,
    operationFrom,
  );
  const dead = prepareQuery(
    database,
    `${select} WHERE subject = ? AND state IN ('conflicted', 'dead') ORDER BY seq`,
    operationFrom,
  );
  const held = prepareQuery(database, `${inQueue} AND held = 1 ORDER BY seq`, operationFrom);
  return {
    head: (subject, queue) => head.first(subject, queue),
    isIdle: (subject, queue) => isBusy(subject, queue) === 0,
    tail: (subject, queue) => tail.first(subject, queue),
    uncertain: (subject, queue) => uncertain.all(subject, queue),
    reconcileAt: (subject, queue, now, asDisable) =>
      delayed.first(subject, queue, now, asDisable ? 1 : 0)?.reconcileAt ?? null,
    backlog: (licenseKey) => backlog.first(licenseKey) ?? emptyBacklog,
    shown: (licenseKey) => shown.all(licenseKey),
    held: (subject, queue) => held.all(subject, queue),
    dead: (subject) => dead.all(subject),
  };
}

/**
 * SQL for a page of operations, sorted by `seq`. `parts`: FROM clauses, each of which reads an index in order. `at`: the
 * number of the first of three parameters: the `seq` before the page, limit and offset. The inner query selects only
 * `seq`, so that an index can skip rows: an outbox may hold a million.
 */
export function pageOfOperations(parts: readonly string[], at: number): string {
  const seqs = parts.map((part) => `SELECT seq ${part} AND seq > ?${at}`).join(' UNION ALL ');
  return `${select} WHERE seq IN (${seqs} ORDER BY seq LIMIT ?${at + 1} OFFSET ?${at + 2}) ORDER BY seq`;
}

/** The open operations of a license key, in pages, because one key may have as many as the outbox holds. */
export function openReads(database: DatabaseSync): Pick<OperationReads, 'openOf' | 'countOpenOf'> {
  // Without this condition, SQLite would read every unfinished row to find no dead row among them.
  const unfinished = `${isUnfinished} AND (?2 IS NULL OR ?2 NOT IN ('conflicted', 'dead'))`;
  const parts = [
    `queue = 'counter' AND ${unfinished}`,
    `queue = 'state' AND ${unfinished}`,
    "queue IN ('counter', 'state') AND state IN ('conflicted', 'dead')",
  ].map((part) => `FROM outbox WHERE subject = ?1 AND ${part} AND (?2 IS NULL OR state = ?2)`);
  const list = prepareQuery(database, pageOfOperations(parts, 3), operationFrom);
  const count = prepareCount(
    database,
    `SELECT ${parts.map((part) => `(SELECT count(*) ${part})`).join(' + ')} AS count`,
  );
  return {
    openOf: (licenseKey, state, page) =>
      list.all(licenseKey, state, afterNumber(page), page.limit, page.offset),
    countOpenOf: (licenseKey, state) => count(licenseKey, state),
  };
}
