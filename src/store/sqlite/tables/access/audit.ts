import type { DatabaseSync } from 'node:sqlite';
import type { PageKey } from '../../../../domain/page.ts';
import type { AuditFilter, AuditReads, AuditTable, RecordedAct } from '../../../../service/access/tables.ts';
import { prepareChange, prepareCount, prepareQuery } from '../../statements.ts';
import { beforeInstant } from '../cursor.ts';

const select = 'SELECT id, at, actor, action AS act, subject, detail FROM audit_event';
const fromRow = (row: RecordedAct): RecordedAct => ({ ...row });

/*
 * The parameters are always since, actor, act, subject, and the instant and id before which the page ends. There is one
 * statement for each leading parameter, because a condition with IS NULL cannot use an index.
 */
const between = 'at >= ?1 AND (at, id) < (?5, ?6)';
const optional = {
  actor: '(?2 IS NULL OR actor = ?2)',
  act: '(?3 IS NULL OR action = ?3)',
  subject: '(?4 IS NULL OR subject = ?4)',
};
const conditions = {
  bySubject: `subject = ?4 AND ${between} AND ${optional.actor} AND ${optional.act}`,
  byActor: `actor = ?2 AND ${between} AND ${optional.act} AND ${optional.subject}`,
  byAct: `action = ?3 AND ${between} AND ${optional.actor} AND ${optional.subject}`,
  byTime: `${between} AND ${optional.actor} AND ${optional.act} AND ${optional.subject}`,
};

export function auditReads(database: DatabaseSync): AuditReads {
  const get = prepareQuery(database, `${select} WHERE id = ?`, fromRow);
  const prepareFiltered = (condition: string) => ({
    list: prepareQuery(
      database,
      `${select} WHERE ${condition} ORDER BY at DESC, id DESC LIMIT ?7 OFFSET ?8`,
      fromRow,
    ),
    count: prepareCount(database, `SELECT count(*) AS count FROM audit_event WHERE ${condition}`),
  });
  const bySubject = prepareFiltered(conditions.bySubject);
  const byActor = prepareFiltered(conditions.byActor);
  const byAct = prepareFiltered(conditions.byAct);
  const byTime = prepareFiltered(conditions.byTime);
  // The ids have no gaps, because events are never removed. So the largest id is the count.
  const all = prepareCount(database, 'SELECT coalesce(max(id), 0) AS count FROM audit_event');
  const isOfAll = ({ since, until, actor, act, subject }: AuditFilter): boolean =>
    [since, until, actor, act, subject].every((value) => value === undefined);
  const statementsFor = ({ actor, act, subject }: AuditFilter) => {
    if (subject !== undefined) return bySubject;
    if (actor !== undefined) return byActor;
    return act === undefined ? byTime : byAct;
  };
  return {
    get: (id) => get.first(id),
    list: (filter, { cursor, limit, offset }) =>
      statementsFor(filter).list.all(...filterParameters(filter, cursor), limit, offset),
    count: (filter) => (isOfAll(filter) ? all() : statementsFor(filter).count(...filterParameters(filter))),
  };
}

function filterParameters(
  { since = 0, until = Number.MAX_SAFE_INTEGER, actor, act, subject }: AuditFilter,
  cursor?: PageKey,
): (string | number | null)[] {
  return [since, actor ?? null, act ?? null, subject ?? null, ...beforeInstant(cursor, until, 0)];
}

/** The schema prevents changing and removing audit events. */
export function auditTable(database: DatabaseSync): AuditTable {
  const add = prepareChange(
    database,
    'INSERT INTO audit_event (at, actor, action, subject, detail) VALUES (:at, :actor, :act, :subject, :detail)',
  );
  return {
    ...auditReads(database),
    add({ at, actor, act, subject, detail }) {
      add({ at, actor, act, subject, detail });
    },
  };
}
