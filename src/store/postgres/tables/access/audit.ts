import type { AuditFilter, AuditReads, AuditTable, RecordedAct } from '../../../../service/access/tables.ts';
import type { AwaitableTable } from '../../../../service/tables.ts';
import {
  prepareList,
  prepareQuery,
  prepareWrite,
  type Condition,
  type Source,
  type WritingSource,
} from '../../statements.ts';

const columns = 'id, at, actor, action AS act, subject, detail';
const fromRow = (row: RecordedAct): RecordedAct => row;

function conditionsOf({ since, until, actor, act, subject }: AuditFilter): Condition[] {
  return [
    [(place) => `at >= ${place}`, since],
    [(place) => `at < ${place}`, until],
    [(place) => `actor = ${place}`, actor],
    [(place) => `action = ${place}`, act],
    [(place) => `subject = ${place}`, subject],
  ];
}

export function auditReads(source: Source): AwaitableTable<AuditReads> {
  const { audit } = source.names;
  const get = prepareQuery(source, `SELECT ${columns} FROM ${audit} WHERE id = $1`, fromRow);
  const listed = prepareList(
    source,
    { select: columns, from: audit, key: ['at', 'id'], isLatestFirst: true },
    fromRow,
  );
  return {
    get: (id) => get.first(id),
    list: (filter, page) => listed.list(conditionsOf(filter), page),
    count: (filter) => listed.count(conditionsOf(filter)),
  };
}

/** The schema prevents changing and removing audit events. */
export function auditTable(source: WritingSource): AwaitableTable<AuditTable> {
  const add = prepareWrite(
    source,
    `INSERT INTO ${source.names.audit} (at, actor, action, subject, detail) VALUES ($1, $2, $3, $4, $5)`,
  );
  return {
    ...auditReads(source),
    add: ({ at, actor, act, subject, detail }) => add(at, actor, act, subject, detail),
  };
}
