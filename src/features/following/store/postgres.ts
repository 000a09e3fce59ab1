import type { On, Sql, SqlValue, WritingSql } from '../../../store/sql.ts';
import { license } from '../../../store/tables/license.ts';
import { changesPerRead } from '../domain/change-feed.ts';
import type { FollowedQuery, FollowedRead, FollowerReads, FollowerTable } from '../service/tables.ts';
import { followedLicenses, type LicenseRow, rowReads, rowTable } from './follower.ts';

/**
 * A place in the history of changes on PostgreSQL: every transaction that the snapshot `base` shows is before it. (The id of
 * a transaction is no place: transactions commit in another order.) `part`: a reader has also seen the changes that the
 * snapshot `until` shows, up to one of a transaction and a license key.
 */
type Position = {
  base: string;
  part: { until: string; xid: string; licenseKey: string } | null;
};

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
} & LicenseRow;

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

export function followerReads(sql: Sql<'postgres'>): On<'postgres', FollowerReads> {
  const isPast = sql.value<boolean>(
    'SELECT pg_snapshot_xmax($1::pg_snapshot) <= pg_snapshot_xmax(pg_current_snapshot())',
  );
  const now = sql.value<string>('SELECT pg_current_snapshot()::text');
  const followed = sql.all(selectFollowed(sql.dialect.epoch), license.from as (row: never) => FollowedRow);
  const followers = sql.all<Progress & { agent: number | null }>(selectFollowers);
  return {
    ...rowReads(sql),
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
    async ofChanges(text) {
      const position = text === null ? null : parsePosition(text);
      if (position === null) return { position: (await now()) ?? '', hasMore: false, followers: [] };
      const rows = await followers(...afterValues(position));
      const [first] = rows;
      if (first === undefined) throw new Error('the history has no row');
      return { ...nextPosition(position, first), followers: rows.flatMap((row) => row.agent ?? []) };
    },
  };
}

function followedFrom(position: Position | null, rows: readonly FollowedRow[]): FollowedRead {
  const [state] = rows;
  if (state === undefined) throw new Error('the state of an agent has no row');
  return {
    epoch: state.epoch,
    ...nextPosition(position, state),
    licenses: followedLicenses(rows),
    absent: rows.flatMap(({ wantedKey, licenseKey }) => (licenseKey === null ? (wantedKey ?? []) : [])),
  };
}

export function followerTable(sql: WritingSql<'postgres'>): On<'postgres', FollowerTable> {
  const agents = rowTable(sql);
  const follows = followTable(sql);
  return {
    ...agents,
    ...followerReads(sql),
    ...follows,
    async remove(number) {
      await follows.unfollow(number, null);
      await agents.remove(number);
    },
  };
}

type FollowMethod = 'follow' | 'unfollow' | 'pruneFollows';

function followTable(sql: WritingSql<'postgres'>): On<'postgres', Pick<FollowerTable, FollowMethod>> {
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

/** The largest transaction id, and one more. */
const maxXid = 2n ** 63n;

function formatPosition({ base, part }: Position): string {
  return part === null ? base : JSON.stringify([base, part.until, part.xid, part.licenseKey]);
}

/** Null: the text is not a position. PostgreSQL would refuse it with an error. */
function parsePosition(text: string): Position | null {
  if (!text.startsWith('[')) return isSnapshot(text) ? { base: text, part: null } : null;
  const members = parseTexts(text);
  const [base = '', until = '', xid = '', licenseKey = ''] = members;
  if (members.length !== 4 || !isSnapshot(base) || !isSnapshot(until) || !/^\d{1,18}$/.test(xid)) return null;
  return licenseKey.isWellFormed() && !licenseKey.includes('\0')
    ? { base, part: { until, xid, licenseKey } }
    : null;
}

function parseTexts(text: string): string[] {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed.filter((each) => typeof each === 'string') : [];
  } catch {
    return [];
  }
}

/** Whether PostgreSQL accepts a text as a `pg_snapshot`: `xmin:xmax:running,…`. */
function isSnapshot(text: string): boolean {
  const [, first = '', last = '', list = ''] = /^(\d{1,19}):(\d{1,19}):([\d,]*)$/.exec(text) ?? [];
  if (first === '') return false;
  const [xmin, xmax] = [BigInt(first), BigInt(last)];
  if (xmin < 1n || xmax < xmin || xmax >= maxXid) return false;
  if (list === '') return true;
  let before = xmin - 1n;
  return list.split(',').every((each) => {
    if (!/^\d{1,19}$/.test(each)) return false;
    const running = BigInt(each);
    const isNext = running > before && running < xmax;
    before = running;
    return isNext;
  });
}
