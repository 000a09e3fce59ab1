import type { SyncAgent, SyncReads, SyncTable } from '../service/tables.ts';
import { columns, ofAccount, type Engine, type On, type Sql, type WritingSql } from '../../../store/sql.ts';

const agent = columns<Omit<SyncAgent, 'number'>>(
  'agent_id, reach, account_id, product_key, followed, created_at, seen_at',
);

type AgentRead = 'agent' | 'byNumber' | 'list' | 'count' | 'countOfReach' | 'idle' | 'reached';

/** The agents that follow license keys. Each engine has its own history of changes (`sync.ts`). */
export function agentReads<E extends Engine>(sql: Sql<E>): On<E, Pick<SyncReads, AgentRead>> {
  const columnList = `number, ${agent.list}`;
  const select = `SELECT ${columnList} FROM latchkey.sync_agent`;
  const listed = sql.list<SyncAgent>({ select: columnList, from: 'latchkey.sync_agent', key: ['number'] });
  const reached = sql.column<string>(`SELECT license_key FROM latchkey.license
     WHERE ${sql.dialect.isIn('license_key', '$3')} AND ($2::text IS NULL OR product_key = $2)
       AND EXISTS (SELECT 1 FROM latchkey.product AS reached
         WHERE reached.product_key = license.product_key AND reached.account_id = $1)`);
  return {
    agent: sql.get(`${select} WHERE agent_id = $1 AND reach = $2`),
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

export function agentTable<E extends Engine>(
  sql: WritingSql<E>,
): On<E, Pick<SyncTable, AgentRead | 'add' | 'setSeen' | 'remove'>> {
  const add = sql.run(agent.insert('sync_agent'));
  return {
    ...agentReads(sql),
    add: (added) => add(...agent.values(added)),
    setSeen: sql.run('UPDATE latchkey.sync_agent SET seen_at = $2 WHERE number = $1'),
    remove: sql.run('DELETE FROM latchkey.sync_agent WHERE number = $1'),
  };
}
