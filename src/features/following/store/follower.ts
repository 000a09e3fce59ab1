import type { License } from '../../../domain/license.ts';
import type { FollowedRead, Follower, FollowerReads, FollowerTable } from '../service/tables.ts';
import { columns, ofAccount, type Engine, type On, type Sql, type WritingSql } from '../../../store/sql.ts';
import { termsIn } from '../../../store/tables/terms.ts';

const agent = columns<Omit<Follower, 'number'>>(
  'agent_id, reach, account_id, product_key, followed, created_at, seen_at',
);

type RowRead = 'get' | 'byNumber' | 'list' | 'count' | 'countOfReach' | 'idle' | 'reached';

/** The rows of followers. Each engine has its own history of changes (`sqlite.ts`, `postgres.ts`). */
export function rowReads<E extends Engine>(sql: Sql<E>): On<E, Pick<FollowerReads, RowRead>> {
  const columnList = `number, ${agent.list}`;
  const select = `SELECT ${columnList} FROM latchkey.sync_agent`;
  const listed = sql.list<Follower>({ select: columnList, from: 'latchkey.sync_agent', key: ['number'] });
  const reached = sql.column<string>(`SELECT license_key FROM latchkey.license
     WHERE ${sql.dialect.isIn('license_key', '$3')} AND ($2::text IS NULL OR product_key = $2)
       AND EXISTS (SELECT 1 FROM latchkey.product AS reached
         WHERE reached.product_key = license.product_key AND reached.account_id = $1)`);
  return {
    get: sql.get(`${select} WHERE agent_id = $1 AND reach = $2`),
    byNumber: sql.get(`${select} WHERE number = $1`),
    list: ({ tenant }, page) => listed.list([ofAccount(tenant)], page),
    count: ({ tenant }) => listed.count([ofAccount(tenant)]),
    countOfReach: sql.count('SELECT count(*) AS count FROM latchkey.sync_agent WHERE reach = $1'),
    idle: sql.column(
      `SELECT number FROM latchkey.sync_agent WHERE seen_at < $2 AND ($1::text IS NULL OR reach = $1)
       ORDER BY seen_at LIMIT $3`,
    ),
    reached: ({ accountId, productKey }, licenseKeys) => reached(accountId, productKey, licenseKeys),
  };
}

export function rowTable<E extends Engine>(
  sql: WritingSql<E>,
): On<E, Pick<FollowerTable, RowRead | 'add' | 'setSeen' | 'remove'>> {
  const add = sql.run(agent.insert('sync_agent'));
  return {
    ...rowReads(sql),
    add: (added) => add(...agent.values(added)),
    setSeen: sql.run('UPDATE latchkey.sync_agent SET seen_at = $2 WHERE number = $1'),
    remove: sql.run('DELETE FROM latchkey.sync_agent WHERE number = $1'),
  };
}

/** A license with its revision; `licenseKey`: null: the follower cannot see it. */
export type LicenseRow = Omit<License, 'licenseKey'> & { licenseKey: string | null; revision: number };

export function followedLicenses(rows: readonly LicenseRow[]): FollowedRead['licenses'] {
  return rows.flatMap(
    ({ licenseKey, productKey, buyerEmail, uses, enabled, createdAt, revision, ...row }) => {
      const members = { productKey, buyerEmail, uses, enabled, createdAt, ...termsIn(row) };
      return licenseKey === null ? [] : [{ license: { licenseKey, ...members }, revision }];
    },
  );
}
