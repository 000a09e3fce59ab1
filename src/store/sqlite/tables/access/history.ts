import type { DatabaseSync } from 'node:sqlite';
import { maxHistoryEntries } from '../../../../domain/history.ts';
import type { HistoryReads, HistoryTable, ListedChange } from '../../../../service/access/tables.ts';
import { bit, prepareChange, prepareCount, prepareQuery, type Bit } from '../../statements.ts';

/** Remove old changes in batches: removing one at each change would double the writes. */
const trimBatch = 100;

type Row = Pick<ListedChange, 'licenseKey' | 'number' | 'at' | 'change' | 'credential'> & {
  usesBefore: number;
  enabledBefore: Bit;
  usesAfter: number;
  enabledAfter: Bit;
};

function fromRow({ usesBefore, enabledBefore, usesAfter, enabledAfter, ...same }: Row): ListedChange {
  return {
    ...same,
    before: { uses: usesBefore, enabled: enabledBefore === 1 },
    after: { uses: usesAfter, enabled: enabledAfter === 1 },
  };
}

/** The number of the first listed change of a key. Older changes may not have been removed yet. */
const firstListed = `coalesce((SELECT number FROM license_history WHERE license_key = ?1
  ORDER BY number DESC LIMIT 1 OFFSET ${maxHistoryEntries - 1}), 0)`;

export function historyReads(database: DatabaseSync): HistoryReads {
  const list = prepareQuery(
    database,
    `SELECT license_key AS licenseKey, number, at, change, credential, uses_before AS usesBefore,
       enabled_before AS enabledBefore, uses_after AS usesAfter, enabled_after AS enabledAfter
     FROM license_history WHERE license_key = ?1 AND at >= ?2 AND number < ?3 AND number >= ${firstListed}
     ORDER BY number DESC LIMIT ?4 OFFSET ?5`,
    fromRow,
  );
  const count = prepareCount(
    database,
    'SELECT count(*) AS count FROM license_history WHERE license_key = ? AND at >= ?',
  );
  return {
    list: (licenseKey, { limit, offset, cursor, since = 0 }) =>
      list.all(licenseKey, since, Number(cursor?.[0] ?? Number.MAX_SAFE_INTEGER), limit, offset),
    count: (licenseKey, since = 0) => Math.min(count(licenseKey, since), maxHistoryEntries),
  };
}

/** The history of license keys. Each key numbers its changes. */
export function historyTable(database: DatabaseSync): HistoryTable {
  const numberAfter = (key: string): string =>
    `(SELECT coalesce(max(number), 0) FROM license_history WHERE license_key = ${key})`;
  const add = prepareQuery(
    database,
    `INSERT INTO license_history (license_key, number, at, change, credential, uses_before, enabled_before,
       uses_after, enabled_after)
     VALUES (?1, 1 + ${numberAfter('?1')}, ?2, ?3, ?4, ?5, ?6, ?7, ?8) RETURNING number`,
    ({ number }: { number: number }) => number,
  );
  const trim = prepareChange(
    database,
    'DELETE FROM license_history WHERE license_key = :licenseKey AND number <= :last',
  );
  const changeKey = prepareChange(
    database,
    `UPDATE license_history SET license_key = :to, number = number + ${numberAfter(':to')}
     WHERE license_key = :from`,
  );
  const prune = prepareChange(
    database,
    `DELETE FROM license_history WHERE (license_key, number) IN
       (SELECT license_key, number FROM license_history WHERE at < :before ORDER BY at LIMIT :limit)`,
  );
  return {
    ...historyReads(database),
    add({ licenseKey, at, change, credential, before, after }) {
      const states = [before.uses, bit(before.enabled), after.uses, bit(after.enabled)];
      const number = add.first(licenseKey, at, change, credential, ...states) ?? 0;
      if (number > maxHistoryEntries && number % trimBatch === 0)
        trim({ licenseKey, last: number - maxHistoryEntries });
    },
    changeKey(from, to) {
      changeKey({ from, to });
    },
    prune: (before, limit) => prune({ before, limit }).changes,
  };
}
