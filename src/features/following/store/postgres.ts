import type { License } from '../../../domain/license.ts';
import type { On, Sql, SqlValue, WritingSql } from '../../../store/sql.ts';
import { license } from '../../../store/tables/license.ts';
import { changesPerRead } from '../domain/follow.ts';
import type { FollowedQuery, FollowedRead, SyncReads, SyncTable } from '../service/tables.ts';
import { formatPosition, parsePosition, type Position } from './history-position.ts';
import { agentReads, agentTable } from './sync-agent.ts';

/**
 * The changes after a position, up to a limit: `$1` is the snapshot before them, `$2` the snapshot that they must be in
 * (null: the current one), and `$3`, `$4` the change to begin after (null: the first).
 */
const changesAfter = `SELECT xid, license_key FROM latchkey.license_change
  WHERE xid >= pg_snapshot_xmin($1::pg_snapshot) AND NOT pg_visible_in_snapshot(xid, $1::pg_snapshot)
    AND pg_visible_in_snapshot(xid, coalesce($2::pg_snapshot, pg_current_snapshot()))
    AND ($3::xid8 IS NULL OR (xid, license_key) > ($3::xid8, $4::text COLLATE "C"))
  ORDER BY xid, license_key LIMIT ${changesPerRead}`;

/** The columns that lead to the next position. */
const progress = `pg_current_snapshot()::text AS now, (SELECT count(*) FROM scanned) AS scanned,
  (SELECT xid::text FROM scanned ORDER BY xid DESC, license_key DESC LIMIT 1) AS "lastXid",
  (SELECT license_key FROM scanned ORDER BY xid DESC, license_key DESC LIMIT 1) AS "lastKey"`;

type Progress = { now: string; scanned: number; lastXid: string | null; lastKey: string | null };

function afterValues(position: Position | null): SqlValue[] {
  if (position === null) return [null, null, null, null];
  const { base, part } = position;
  return [base, part?.until ?? null, part?.xid ?? null, part?.licenseKey ?? null];
}

function nextPosition(
  position: Position | null,
  { now, scanned, lastXid, lastKey }: Progress,
): { position: string; hasMore: boolean } {
  const until = position?.part?.until ?? now;
  if (position === null || scanned < changesPerRead || lastXid === null || lastKey === null) {
    // The changes after `until` are next.
    return { position: until, hasMore: until !== now };
  }
  const part = { until, xid: lastXid, licenseKey: lastKey };
  return { position: formatPosition({ base: position.base, part }), hasMore: true };
}

type FollowedRow = Progress & {
  epoch: string;
  wantedKey: string | null;
  revision: number;
} & Omit<License, 'licenseKey'> & { licenseKey: string | null };

/** One statement, so that everything is from the same instant. */
const selectFollowed = (epoch: string): string => `WITH
  state AS MATERIALIZED (SELECT ${epoch} AS epoch,
    (SELECT number FROM latchkey.sync_agent WHERE agent_id = $5 AND reach = $6) AS agent),
  scanned AS MATERIALIZED (${changesAfter}),
  wanted AS (
    SELECT scanned.license_key FROM scanned, state WHERE EXISTS (SELECT FROM latchkey.sync_follow AS follow
      WHERE follow.agent = state.agent AND follow.license_key = scanned.license_key)
    UNION SELECT key COLLATE "C" FROM unnest($7::text[]) AS named (key))
  SELECT state.epoch, ${progress}, wanted.license_key AS "wantedKey", ${license.list}
  FROM state LEFT JOIN wanted ON true LEFT JOIN latchkey.license
    ON license.license_key = wanted.license_key
    AND ($9::text IS NULL OR license.product_key = $9::text) AND EXISTS (SELECT FROM latchkey.product AS reached
      WHERE reached.product_key = license.product_key AND reached.account_id = $8::text)`;

const selectFollowers = `WITH
  scanned AS MATERIALIZED (${changesAfter}),
  followers AS (SELECT DISTINCT follow.agent FROM scanned
    JOIN latchkey.sync_follow AS follow ON follow.license_key = scanned.license_key)
  SELECT ${progress}, followers.agent FROM (SELECT) AS one LEFT JOIN followers ON true`;

export function syncReads(sql: Sql<'postgres'>): On<'postgres', SyncReads> {
  const isPast = sql.value<boolean>(
    'SELECT pg_snapshot_xmax($1::pg_snapshot) <= pg_snapshot_xmax(pg_current_snapshot())',
  );
  const now = sql.value<string>('SELECT pg_current_snapshot()::text');
  const followed = sql.all<FollowedRow>(selectFollowed(sql.dialect.epoch));
  const followers = sql.all<Progress & { agent: number | null }>(selectFollowers);
  return {
    ...agentReads(sql),
    async isPosition(text) {
      const position = parsePosition(text);
      if (position === null) return false;
      return (await isPast(position.part?.until ?? position.base)) === true;
    },
    async followed({ agentId, reach, tenant, position: text, keys }: FollowedQuery) {
      const position = text === null ? null : parsePosition(text);
      const { accountId, productKey } = tenant;
      const rows = await followed(...afterValues(position), agentId, reach, keys, accountId, productKey);
      return followedFrom(position, rows);
    },
    async followers(text) {
      const position = text === null ? null : parsePosition(text);
      if (position === null) return { position: (await now()) ?? '', hasMore: false, agents: [] };
      const rows = await followers(...afterValues(position));
      const [first] = rows;
      if (first === undefined) throw new Error('the history has no row');
      return { ...nextPosition(position, first), agents: rows.flatMap((row) => row.agent ?? []) };
    },
  };
}

function followedFrom(position: Position | null, rows: readonly FollowedRow[]): FollowedRead {
  const [state] = rows;
  if (state === undefined) throw new Error('the state of an agent has no row');
  const licenses = rows.flatMap(
    ({ licenseKey, productKey, buyerEmail, uses, enabled, createdAt, revision }) =>
      licenseKey === null
        ? []
        : [{ license: { licenseKey, productKey, buyerEmail, uses, enabled, createdAt }, revision }],
  );
  return {
    epoch: state.epoch,
    ...nextPosition(position, state),
    licenses,
    absent: rows.flatMap(({ wantedKey, licenseKey }) => (licenseKey === null ? (wantedKey ?? []) : [])),
  };
}

export function syncTable(sql: WritingSql<'postgres'>): On<'postgres', SyncTable> {
  const agents = agentTable(sql);
  const follows = followTable(sql);
  return {
    ...agents,
    ...syncReads(sql),
    ...follows,
    async remove(number) {
      await follows.unfollow(number, null);
      await agents.remove(number);
    },
  };
}

type FollowMethod = 'follow' | 'unfollow' | 'pruneFollows';

function followTable(sql: WritingSql<'postgres'>): On<'postgres', Pick<SyncTable, FollowMethod>> {
  const follow = sql.changes(`INSERT INTO latchkey.sync_follow (agent, license_key)
     SELECT $1::bigint, key FROM unnest($2::text[]) AS named (key) ON CONFLICT DO NOTHING`);
  const unfollow = sql.changes(`DELETE FROM latchkey.sync_follow
     WHERE agent = $1 AND ($2::text[] IS NULL OR license_key = ANY ($2::text[]))`);
  const changeFollowed = sql.count(
    'UPDATE latchkey.sync_agent SET followed = followed + $2::bigint WHERE number = $1 RETURNING followed',
  );
  const silent = sql.value<number>(`SELECT number FROM latchkey.sync_agent
     WHERE followed > 0 AND seen_at < $1 ORDER BY number LIMIT 1 FOR UPDATE SKIP LOCKED`);
  const firstKeys = sql.column<string>(
    'SELECT license_key FROM latchkey.sync_follow WHERE agent = $1 ORDER BY license_key LIMIT $2',
  );
  return {
    follow: async (number, licenseKeys) => await changeFollowed(number, await follow(number, licenseKeys)),
    unfollow: async (number, licenseKeys) =>
      await changeFollowed(number, -(await unfollow(number, licenseKeys))),
    async pruneFollows(before, limit) {
      const number = await silent(before);
      if (number === null) return 0;
      await changeFollowed(number, -(await unfollow(number, await firstKeys(number, limit))));
      // There may be another silent agent.
      return limit;
    },
  };
}
