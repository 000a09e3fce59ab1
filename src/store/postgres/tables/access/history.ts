import { maxHistoryEntries } from '../../../../domain/history.ts';
import type { HistoryReads, HistoryTable, ListedChange } from '../../../../service/access/tables.ts';
import type { AuthorityTable, AwaitableTable } from '../../../../service/tables.ts';
import { prepareQuery, prepareWrite, type Source, type WritingSource } from '../../statements.ts';

type Row = Pick<ListedChange, 'licenseKey' | 'number' | 'at' | 'change' | 'credential'> & {
  usesBefore: number;
  enabledBefore: boolean;
  usesAfter: number;
  enabledAfter: boolean;
};

function fromRow({ usesBefore, enabledBefore, usesAfter, enabledAfter, ...same }: Row): ListedChange {
  return {
    ...same,
    before: { uses: usesBefore, enabled: enabledBefore },
    after: { uses: usesAfter, enabled: enabledAfter },
  };
}

export function historyReads(source: Source): AwaitableTable<HistoryReads> {
  const { licenseHistory } = source.names;
  const list = prepareQuery(
    source,
    `SELECT license_key AS "licenseKey", number, at, change, credential, uses_before AS "usesBefore",
       enabled_before AS "enabledBefore", uses_after AS "usesAfter", enabled_after AS "enabledAfter"
     FROM ${licenseHistory} WHERE license_key = $1 AND at >= $2 AND number < $3
     ORDER BY number DESC LIMIT $4::bigint OFFSET $5::bigint`,
    fromRow,
  );
  const count = prepareQuery(
    source,
    `SELECT count(*) AS count FROM ${licenseHistory} WHERE license_key = $1 AND at >= $2`,
    (row: { count: number }) => row.count,
  );
  return {
    list: (licenseKey, { limit, offset, cursor, since = 0 }) =>
      list.all(licenseKey, since, cursor?.[0] ?? Number.MAX_SAFE_INTEGER, limit, offset),
    count: async (licenseKey, since = 0) => (await count.first(licenseKey, since)) ?? 0,
  };
}

/**
 * The history of license keys. The license row has the number of its last change, because a count of the changes would
 * not see those that were committed while this transaction waited for the row.
 */
export function historyTable(source: WritingSource): AuthorityTable<HistoryTable> {
  const { license, licenseHistory } = source.names;
  const add = prepareWrite(
    source,
    `WITH numbered AS (
       UPDATE ${license} SET changes = changes + 1 WHERE license_key = $1 RETURNING changes
     ), trimmed AS (
       DELETE FROM ${licenseHistory} WHERE license_key = $1
         AND number <= (SELECT changes FROM numbered) - ${maxHistoryEntries}
     )
     INSERT INTO ${licenseHistory} (license_key, number, at, change, credential, uses_before, enabled_before,
       uses_after, enabled_after)
     SELECT $1, changes, $2, $3, $4, $5, $6, $7, $8 FROM numbered`,
  );
  const prune = prepareQuery(
    source,
    `WITH pruned AS (
       DELETE FROM ${licenseHistory} WHERE (license_key, number) IN
         (SELECT license_key, number FROM ${licenseHistory} WHERE at < $1 ORDER BY at LIMIT $2::bigint)
       RETURNING 1
     ) SELECT count(*) AS count FROM pruned`,
    (row: { count: number }) => row.count,
  );
  return {
    ...historyReads(source),
    add: ({ licenseKey, at, change, credential, before, after }) =>
      add(licenseKey, at, change, credential, before.uses, before.enabled, after.uses, after.enabled),
    prune: async (before, limit) => (await prune.first(before, limit)) ?? 0,
  };
}
