import { randomBytes } from 'node:crypto';
import type { License } from '../../../domain/license.ts';
import type {
  ChainReads,
  ChainTable,
  FollowedRead,
  FollowerReads,
  FollowerTable,
} from '../service/tables.ts';
import { changesPerRead } from '../domain/change-feed.ts';
import { license } from '../../../store/tables/license.ts';
import { termColumns, type StoredTerms } from '../../../store/tables/terms.ts';
import { followedLicenses, type LicenseRow, rowReads, rowTable } from './follower.ts';
import { columns, type Sql, type WritingSql } from '../../../store/sql.ts';
import { tenantIs } from '../../../store/sqlite/statements.ts';

/** The end of the history. The table of changes has one row for each license, so its last row may have been replaced. */
const lastNumber = "coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'license_change'), 0)";

type FollowedRow = {
  epoch: string;
  end: number;
  scanned: number;
  last: number;
  wantedKey: string | null;
} & LicenseRow;

/**
 * One statement, so that everything is from the same instant. It reads the changes of all licenses after a number, up to a
 * limit, and then keeps those that the follower has.
 * `epoch`: SQL for the epoch. `$1` and `$2`: the follower and its reach; `$5`: the number, or null; `$6`: the keys that are read in any case.
 */
const followedParts = (epoch: string): string => `
  state AS MATERIALIZED (SELECT ${epoch} AS epoch, ${lastNumber} AS end,
    (SELECT number FROM sync_agent WHERE agent_id = $1 AND reach = $2) AS agent),
  scanned AS MATERIALIZED (SELECT number, license_key FROM license_change
    WHERE $5 IS NOT NULL AND number > $5 ORDER BY number LIMIT ${changesPerRead}),
  wanted AS (
    SELECT scanned.license_key FROM scanned, state WHERE EXISTS (SELECT 1 FROM sync_follow
      WHERE sync_follow.agent = state.agent AND sync_follow.license_key = scanned.license_key)
    UNION SELECT value FROM json_each($6))`;

const followedState = `state.epoch, state.end,
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
type Positions = { of(number: number): string; isKnown(position: string): boolean };

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

function numberIn(position: string): number {
  return Number.parseInt(position, 10);
}

export function followerReads(sql: Sql<'sqlite'>, positions: Positions): FollowerReads {
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
    ...rowReads(sql),
    isPosition: (position) => positions.isKnown(position),
    followed({ agentId, reach, tenant, position, keys }) {
      const after = position === null ? null : numberIn(position);
      const { accountId, productKey } = tenant;
      return followedFrom(positions, followed(agentId, reach, accountId, productKey, after, keys));
    },
    ofChanges(position) {
      const last = end();
      if (position === null) return { position: positions.of(last), hasMore: false, followers: [] };
      const rows = changed(numberIn(position));
      const numbers = new Set(rows.map(({ number }) => number));
      const hasMore = numbers.size === changesPerRead;
      const followers = new Set(rows.flatMap(({ agent }) => agent ?? []));
      const at = hasMore ? Math.max(...numbers) : Math.max(last, ...numbers);
      return { position: positions.of(at), hasMore, followers: [...followers] };
    },
  };
}

function followedFrom(positions: Positions, rows: readonly FollowedRow[]): FollowedRead {
  const [state] = rows;
  if (state === undefined) throw new Error('the state of an agent has no row');
  const hasMore = state.scanned === changesPerRead;
  return {
    epoch: state.epoch,
    position: positions.of(hasMore ? state.last : state.end),
    hasMore,
    licenses: followedLicenses(rows),
    absent: rows.flatMap(({ wantedKey, licenseKey }) => (licenseKey === null ? (wantedKey ?? []) : [])),
  };
}

export function followerTable(sql: WritingSql<'sqlite'>, positions: Positions): FollowerTable {
  const agents = rowTable(sql);
  const follows = followTable(sql);
  return {
    ...agents,
    ...followerReads(sql, positions),
    ...follows,
    remove(number) {
      follows.unfollow(number, null);
      void agents.remove(number);
    },
  };
}

type FollowMethod = 'follow' | 'unfollow' | 'pruneFollows';

function followTable(sql: WritingSql<'sqlite'>): Pick<FollowerTable, FollowMethod> {
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

/* What an agent in the middle of a chain tells the agents below it. */

/** A followed key was confirmed with its product, if that is later. */
const confirmedAt = `CASE snapshot.followed WHEN 0 THEN snapshot.confirmed_at
  ELSE max(snapshot.confirmed_at, coalesce(follow.confirmed_at, 0)) END`;

const isVisible = 'snapshot.product_key IN (SELECT value FROM json_each($3))';

/** The earliest confirmation of a license that the agent below follows; if it follows none, that of its products. */
const allConfirmedAt = `coalesce(
  (SELECT min(${confirmedAt}) FROM sync_follow
    JOIN license_snapshot AS snapshot ON snapshot.license_key = sync_follow.license_key
    LEFT JOIN follow ON follow.product_key = snapshot.product_key
    WHERE sync_follow.agent = state.agent AND snapshot.gone = 0 AND ${isVisible}),
  (SELECT min(follow.confirmed_at) FROM json_each($3)
    CROSS JOIN follow ON follow.product_key = json_each.value),
  0)`;

const shown = columns<License & StoredTerms>(
  `license_key, product_link AS productKey, buyer_email, local_uses AS uses, local_enabled AS enabled BOOL, created_at,
    ${termColumns}, shown_revision AS revision`,
  'snapshot',
);

const selectChain = (epoch: string): string => `WITH ${followedParts(epoch)},
  confirmed AS MATERIALIZED (SELECT ${allConfirmedAt} AS at FROM state)
  SELECT ${followedState}, confirmed.at AS "confirmedAt",
    ${shown.list}
  FROM state JOIN confirmed LEFT JOIN wanted ON true
    LEFT JOIN license_snapshot AS snapshot
      ON snapshot.license_key = wanted.license_key AND snapshot.gone = 0 AND ${isVisible}`;

export function chainReads(sql: Sql<'sqlite'>, positions: Positions): ChainReads {
  const followed = sql.all(
    selectChain(sql.dialect.epoch),
    shown.from as (row: never) => FollowedRow & { confirmedAt: number },
  );
  return {
    followed({ agentId, reach, productIds, position, keys }) {
      const after = position === null ? null : numberIn(position);
      const rows = followed(agentId, reach, productIds, null, after, keys);
      return { ...followedFrom(positions, rows), confirmedAt: rows[0]?.confirmedAt ?? 0 };
    },
  };
}

export function chainTable(sql: WritingSql<'sqlite'>, positions: Positions): ChainTable {
  // Setting `refresh_at` would rewrite its index.
  const askedFor = (keys: string) => ({
    touch: sql.run(`UPDATE license_snapshot SET requested_at = $2
     WHERE requested_at < $3 AND license_key IN (${keys})`),
    refresh: sql.run(`UPDATE license_snapshot SET refresh_at = $2
     WHERE refresh_at IS NULL AND license_key IN (${keys})`),
  });
  const listed = askedFor('SELECT value FROM json_each($1)');
  const all = askedFor('SELECT license_key FROM sync_follow WHERE agent = $1');
  return {
    ...chainReads(sql, positions),
    touch(agent, licenseKeys, { askedAt, before, refreshAt }) {
      const { touch, refresh } = licenseKeys === null ? all : listed;
      const which = licenseKeys ?? agent;
      touch(which, askedAt, before);
      refresh(which, refreshAt);
    },
  };
}
