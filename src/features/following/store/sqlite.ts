import { randomBytes } from 'node:crypto';
import type { License } from '../../../domain/license.ts';
import type { FollowedRead, SyncReads, SyncTable } from '../service/tables.ts';
import { changesPerRead } from '../domain/follow.ts';
import { license } from '../../../store/tables/license.ts';
import { agentReads, agentTable } from './sync-agent.ts';
import type { Sql, WritingSql } from '../../../store/sql.ts';
import { tenantIs } from '../../../store/sqlite/statements.ts';

/** The end of the history. The table of changes has one row for each license, so its last row may have been replaced. */
const lastNumber = "coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'license_change'), 0)";

export type FollowedRow = {
  epoch: string;
  end: number;
  scanned: number;
  last: number;
  wantedKey: string | null;
} & Omit<License, 'licenseKey'> & { licenseKey: string | null; revision: number };

/**
 * One statement, so that everything is from the same instant. It reads the changes of all agents after a number, up to a
 * limit, and then keeps those that this agent follows.
 * `epoch`: SQL for the epoch. `$1` and `$2`: the agent and its reach; `$5`: the number, or null; `$6`: the keys that are read in any case.
 */
export const followedParts = (epoch: string): string => `
  state AS MATERIALIZED (SELECT ${epoch} AS epoch, ${lastNumber} AS end,
    (SELECT number FROM sync_agent WHERE agent_id = $1 AND reach = $2) AS agent),
  scanned AS MATERIALIZED (SELECT number, license_key FROM license_change
    WHERE $5 IS NOT NULL AND number > $5 ORDER BY number LIMIT ${changesPerRead}),
  wanted AS (
    SELECT scanned.license_key FROM scanned, state WHERE EXISTS (SELECT 1 FROM sync_follow
      WHERE sync_follow.agent = state.agent AND sync_follow.license_key = scanned.license_key)
    UNION SELECT value FROM json_each($6))`;

export const followedState = `state.epoch, state.end,
  (SELECT count(*) FROM scanned) AS scanned, coalesce((SELECT max(number) FROM scanned), 0) AS last,
  wanted.license_key AS wantedKey`;

const selectFollowed = (epoch: string): string => `WITH ${followedParts(epoch)}
  SELECT ${followedState}, ${license.list}
  FROM state LEFT JOIN wanted ON true
    LEFT JOIN license ON license.license_key = wanted.license_key AND ${tenantIs(3, 4)}`;

/**
 * A position in the history of changes is a number and a name of the process that gave it. If an older copy of the store
 * is put in its place by hand, the same numbers come again for other changes.
 */
export type Positions = { of(number: number): string; isKnown(position: string): boolean };

/** Must be called once for a connection, before the first change. */
export function positionsOf(sql: Sql<'sqlite'>): Positions {
  const end = sql.count(`SELECT ${lastNumber}`);
  const run = randomBytes(8).toString('hex');
  const begunAt = end();
  return {
    of: (number) => `${number}.${run}`,
    isKnown(position) {
      const [, number, givenBy] = /^(\d{1,15})\.([0-9a-f]{16})$/.exec(position) ?? [];
      // A number of another process is known only if the history had it when this process began.
      return number !== undefined && Number(number) <= (givenBy === run ? end() : begunAt);
    },
  };
}

export function numberIn(position: string): number {
  return Number.parseInt(position, 10);
}

export function syncReads(sql: Sql<'sqlite'>, positions: Positions): SyncReads {
  const end = sql.count(`SELECT ${lastNumber}`);
  const followed = sql.all<FollowedRow>(
    selectFollowed(sql.dialect.epoch),
    license.from as (row: never) => FollowedRow,
  );
  const changed = sql.all<{ number: number; agent: number | null }>(
    `SELECT scanned.number, sync_follow.agent FROM (
       SELECT number, license_key FROM license_change WHERE number > $1 ORDER BY number LIMIT ${changesPerRead}
     ) AS scanned LEFT JOIN sync_follow ON sync_follow.license_key = scanned.license_key`,
  );
  return {
    ...agentReads(sql),
    isPosition: (position) => positions.isKnown(position),
    followed({ agentId, reach, tenant, position, keys }) {
      const after = position === null ? null : numberIn(position);
      const { accountId, productKey } = tenant;
      return followedFrom(positions, followed(agentId, reach, accountId, productKey, after, keys));
    },
    followers(position) {
      const last = end();
      if (position === null) return { position: positions.of(last), hasMore: false, agents: [] };
      const rows = changed(numberIn(position));
      const numbers = new Set(rows.map(({ number }) => number));
      const hasMore = numbers.size === changesPerRead;
      const agents = new Set(rows.flatMap(({ agent: follower }) => follower ?? []));
      const at = hasMore ? Math.max(...numbers) : Math.max(last, ...numbers);
      return { position: positions.of(at), hasMore, agents: [...agents] };
    },
  };
}

export function followedFrom(positions: Positions, rows: readonly FollowedRow[]): FollowedRead {
  const [state] = rows;
  if (state === undefined) throw new Error('the state of an agent has no row');
  const hasMore = state.scanned === changesPerRead;
  const licenses = rows.flatMap(
    ({ licenseKey, productKey, buyerEmail, uses, enabled, createdAt, revision }) =>
      licenseKey === null
        ? []
        : [
            {
              license: { licenseKey, productKey, buyerEmail, uses, enabled, createdAt },
              revision,
            },
          ],
  );
  return {
    epoch: state.epoch,
    position: positions.of(hasMore ? state.last : state.end),
    hasMore,
    licenses,
    absent: rows.flatMap(({ wantedKey, licenseKey }) => (licenseKey === null ? (wantedKey ?? []) : [])),
  };
}

export function syncTable(sql: WritingSql<'sqlite'>, positions: Positions): SyncTable {
  const agents = agentTable(sql);
  const follows = followTable(sql);
  return {
    ...agents,
    ...syncReads(sql, positions),
    ...follows,
    remove(number) {
      follows.unfollow(number, null);
      void agents.remove(number);
    },
  };
}

type FollowMethod = 'follow' | 'unfollow' | 'pruneFollows';

function followTable(sql: WritingSql<'sqlite'>): Pick<SyncTable, FollowMethod> {
  const follow = sql.changes(`INSERT INTO sync_follow (agent, license_key)
     SELECT $1, value FROM json_each($2) WHERE true ON CONFLICT DO NOTHING`);
  const unfollow = sql.changes(
    'DELETE FROM sync_follow WHERE agent = $1 AND license_key IN (SELECT value FROM json_each($2))',
  );
  const unfollowAll = sql.changes('DELETE FROM sync_follow WHERE agent = $1');
  const changeFollowed = sql.count(
    'UPDATE sync_agent SET followed = followed + $2 WHERE number = $1 RETURNING followed',
  );
  const silent = sql.get<{ number: number; licenseKeys: string }>(
    `SELECT number, (SELECT json_group_array(license_key) FROM
       (SELECT license_key FROM sync_follow WHERE agent = number LIMIT $2)) AS "licenseKeys"
     FROM sync_agent WHERE followed > 0 AND seen_at < $1 LIMIT 1`,
  );
  return {
    follow: (number, licenseKeys) => changeFollowed(number, follow(number, licenseKeys)),
    unfollow: (number, licenseKeys) =>
      changeFollowed(number, -(licenseKeys === null ? unfollowAll(number) : unfollow(number, licenseKeys))),
    pruneFollows(before, limit) {
      const agent = silent(before, limit);
      if (agent === null) return 0;
      changeFollowed(agent.number, -unfollow(agent.number, agent.licenseKeys));
      // There may be another silent agent.
      return limit;
    },
  };
}
