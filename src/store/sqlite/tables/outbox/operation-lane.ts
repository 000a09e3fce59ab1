import type { DatabaseSync } from 'node:sqlite';
import type { Backlog } from '../../../../domain/agent/observation.ts';
import type { LaneReads } from '../../../../service/outbox/tables.ts';
import { operationColumns, operationFrom } from './operation-row.ts';
import { prepareCount, prepareQuery } from '../../statements.ts';

const select = `SELECT ${operationColumns} FROM outbox`;
/** Word for word the condition of the index `outbox_lane`, or SQLite could not use it. */
export const isUnfinished: string = "(state = 'pending' OR state = 'in_flight' OR state = 'uncertain')";

/** The unfinished operations of a lane: subject, lane. */
export const inLane: string = `${select} WHERE subject = ? AND lane = ? AND ${isUnfinished}`;

const nothing: Backlog = { usages: 0, decreases: 0, disables: 0, unfinished: 0 };

/** Prepares the reads of the lanes of a subject. */
export function laneReads(database: DatabaseSync): LaneReads {
  const head = prepareQuery(database, `${inLane} AND held = 0 ORDER BY seq LIMIT 1`, operationFrom);
  const isBusy = prepareCount(
    database,
    `SELECT EXISTS (SELECT 1 FROM outbox WHERE subject = ? AND lane = ? AND ${isUnfinished} AND held = 0) AS count`,
  );
  const tail = prepareQuery(database, `${inLane} ORDER BY seq DESC LIMIT 1`, operationFrom);
  const uncertain = prepareQuery(
    database,
    `${select} WHERE subject = ? AND lane = ? AND state = 'uncertain' AND held = 0 ORDER BY seq`,
    operationFrom,
  );
  const fence = prepareQuery(
    database,
    `SELECT max(fenced_until) AS fencedUntil FROM outbox
     WHERE subject = ? AND lane = ? AND fenced_until > ? AND (? = 0 OR kind <> 'disable')`,
    (row: { fencedUntil: number | null }) => row,
  );
  const backlog = prepareQuery(
    database,
    'SELECT usages, decreases, disables, unfinished FROM outbox_backlog WHERE subject = ?',
    (row: Backlog) => row,
  );
  const shown = prepareQuery(
    database,
    `${select} WHERE subject = ?1 AND lane IN ('counter', 'state') AND ${isUnfinished}
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
  const held = prepareQuery(database, `${inLane} AND held = 1 ORDER BY seq`, operationFrom);
  return {
    head: (subject, lane) => head.first(subject, lane),
    isIdle: (subject, lane) => isBusy(subject, lane) === 0,
    tail: (subject, lane) => tail.first(subject, lane),
    uncertain: (subject, lane) => uncertain.all(subject, lane),
    fencedUntil: (subject, lane, now, asDisable) =>
      fence.first(subject, lane, now, asDisable ? 1 : 0)?.fencedUntil ?? null,
    backlog: (licenseKey) => backlog.first(licenseKey) ?? nothing,
    shown: (licenseKey) => shown.all(licenseKey),
    held: (subject, lane) => held.all(subject, lane),
    dead: (subject) => dead.all(subject),
  };
}
