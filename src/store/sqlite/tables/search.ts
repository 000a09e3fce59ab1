import { endOfPrefix } from '../../../domain/text.ts';
import type { SqliteSql } from '../statements.ts';

/** Up to this number of licenses of a buyer are sorted. Beyond it, a scan in the order of keys soon finds enough. */
const maxSorted = 2_000;

export function searchParameters(search: string): [from: string, to: string] {
  return [search, endOfPrefix(search)];
}

/**
 * Finds licenses by the beginning of their key or of the e-mail address of their buyer, with the two parameters of
 * `searchParameters` from the number `first`. Keys have letter case; a text in lower case also finds keys in capitals.
 */
export function searchIn(table: 'license' | 'license_snapshot', first: number) {
  const [from, to] = [`$${first}`, `$${first + 1}`];
  const key = `license_key >= ${from} AND license_key < ${to}`;
  const capitals = `license_key >= upper(${from}) AND license_key < upper(${to})`;
  const buyer = `lower(buyer_email) >= lower(${from}) AND lower(buyer_email) < lower(${to})`;
  // In two parts, of which each can use an index.
  const parts = [buyer, `(${key} OR ${capitals}) AND NOT (${buyer})`];
  const counted = (others: string): string =>
    `SELECT ${parts.map((part) => `(SELECT count(*) FROM ${table} WHERE ${part}${others})`).join(' + ')} AS count`;
  const found = [key, capitals, buyer].map((range) => `SELECT license_key FROM ${table} WHERE ${range}`);
  return {
    /** A table `found` with the keys in order, and the rows of the table. */
    sorted: {
      tables: `WITH found (found_key) AS (${found.join(' UNION ')})`,
      from: `found CROSS JOIN ${table} ON license_key = found_key`,
    },
    isMatch: `(${key} OR ${capitals} OR ${buyer})`,
    isBuyer: buyer,
    /** Counts the matching rows. Without other conditions, an index counts the buyers. */
    count: counted(''),
    countAmong: (others: string): string => counted(` AND ${others}`),
  };
}

/** Whether so many licenses are of matching buyers that a scan is faster. */
export function hasManyIn(
  sql: SqliteSql,
  table: 'license' | 'license_snapshot',
): (search: string) => boolean {
  const { isBuyer } = searchIn(table, 1);
  const count = sql.count(
    `SELECT count(*) AS count FROM (SELECT 1 FROM ${table} WHERE ${isBuyer} LIMIT ${maxSorted + 1})`,
  );
  return (search) => count(...searchParameters(search)) > maxSorted;
}
