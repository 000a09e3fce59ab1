import type { License } from '../../../domain/license.ts';
import type {
  FollowedQuery,
  FollowedRead,
  SyncAgent,
  SyncReads,
  SyncTable,
} from '../../../service/sync/tables.ts';
import type { AwaitableTable } from '../../../service/tables.ts';
import { changesPerRead } from '../../../domain/sync/follow.ts';
import { formatPosition, parsePosition, type Position } from '../history-position.ts';
import { licenseColumns } from './license.ts';
import type { Names } from '../names.ts';
import { ofAccount, type Prepare, type SqlValue, type WritingPrepare } from '../statements.ts';

const agentColumns = `number, agent_id AS "agentId", reach, account_id AS "accountId", product_key AS "productKey",
  followed, created_at AS "createdAt", seen_at AS "seenAt"`;

/**
 * The changes after a position, up to a limit: `$1` is the snapshot before them, `$2` the snapshot that they must be in
 * (null: the current one), and `$3`, `$4` the change to begin after (null: the first).
 */
function changesAfter({ licenseChange }: Names): string {
  return `SELECT xid, license_key FROM ${licenseChange}
    WHERE xid >= pg_snapshot_xmin($1::pg_snapshot) AND NOT pg_visible_in_snapshot(xid, $1::pg_snapshot)
      AND pg_visible_in_snapshot(xid, coalesce($2::pg_snapshot, pg_current_snapshot()))
      AND ($3::xid8 IS NULL OR (xid, license_key) > ($3::xid8, $4::text COLLATE "C"))
    ORDER BY xid, license_key LIMIT ${changesPerRead}`;
}

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

/** The first half names the store. The second half changes with the history of the server, too. */
function epochOf(names: Names): string {
  const history = `value || ' ' || ${names.of('server_history')}()`;
  return `(SELECT left(value, 16) || left(encode(sha256(convert_to(${history}, 'UTF8')), 'hex'), 16)
    FROM ${names.setting} WHERE name = 'sync_epoch')`;
}

/** One statement, so that everything is from the same instant. */
function selectFollowed(names: Names): string {
  const { syncAgent, syncFollow, license, product } = names;
  return `WITH
    state AS MATERIALIZED (SELECT ${epochOf(names)} AS epoch,
      (SELECT number FROM ${syncAgent} WHERE agent_id = $5 AND reach = $6) AS agent),
    scanned AS MATERIALIZED (${changesAfter(names)}),
    wanted AS (
      SELECT scanned.license_key FROM scanned, state WHERE EXISTS (SELECT FROM ${syncFollow} AS follow
        WHERE follow.agent = state.agent AND follow.license_key = scanned.license_key)
      UNION SELECT key COLLATE "C" FROM unnest($7::text[]) AS named (key))
    SELECT state.epoch, ${progress}, wanted.license_key AS "wantedKey",
      ${licenseColumns(names)}
    FROM state LEFT JOIN wanted ON true LEFT JOIN ${license} ON ${license}.license_key = wanted.license_key
      AND ($9::text IS NULL OR ${license}.product_key = $9::text) AND EXISTS (SELECT FROM ${product} AS reached
        WHERE reached.product_key = ${license}.product_key AND reached.account_id = $8::text)`;
}

export function syncReads(prepare: Prepare): AwaitableTable<SyncReads> {
  const { names } = prepare;
  const { syncAgent, syncFollow } = names;
  const one = (condition: string) =>
    prepare.query<SyncAgent>(`SELECT ${agentColumns} FROM ${syncAgent} WHERE ${condition}`);
  const agent = one('agent_id = $1 AND reach = $2');
  const listed = prepare.list<SyncAgent>({ select: agentColumns, from: syncAgent, key: ['number'] });
  const epoch = prepare.column<string>(`SELECT ${epochOf(names)}`);
  const isPast = prepare.column<boolean>(
    'SELECT pg_snapshot_xmax($1::pg_snapshot) <= pg_snapshot_xmax(pg_current_snapshot())',
  );
  const now = prepare.column<string>('SELECT pg_current_snapshot()::text');
  const followed = prepare.query<FollowedRow>(selectFollowed(names));
  const followers = prepare.query<Progress & { agent: number | null }>(`WITH
    scanned AS MATERIALIZED (${changesAfter(names)}),
    followers AS (SELECT DISTINCT follow.agent FROM scanned
      JOIN ${syncFollow} AS follow ON follow.license_key = scanned.license_key)
    SELECT ${progress}, followers.agent FROM (SELECT) AS one LEFT JOIN followers ON true`);
  return {
    epoch: async () => (await epoch.first()) ?? '',
    agent: (agentId, reach) => agent.first(agentId, reach),
    byNumber: one('number = $1').first,
    list: (filter, page) => listed.list([ofAccount(filter.tenant)], page),
    count: ({ tenant }) => listed.count([ofAccount(tenant)]),
    ...reachReads(prepare),
    async isPosition(text) {
      const position = parsePosition(text);
      if (position === null) return false;
      return (await isPast.first(position.part?.until ?? position.base)) === true;
    },
    async followed({ agentId, reach, tenant, position: text, keys }: FollowedQuery) {
      const position = text === null ? null : parsePosition(text);
      const { accountId, productKey } = tenant;
      const rows = await followed.all(...afterValues(position), agentId, reach, keys, accountId, productKey);
      return followedFrom(position, rows);
    },
    async followers(text) {
      const position = text === null ? null : parsePosition(text);
      if (position === null) return { position: (await now.first()) ?? '', hasMore: false, agents: [] };
      const rows = await followers.all(...afterValues(position));
      const [first] = rows;
      if (first === undefined) throw new Error('the history has no row');
      return { ...nextPosition(position, first), agents: rows.flatMap((row) => row.agent ?? []) };
    },
  };
}

function reachReads(prepare: Prepare): Pick<AwaitableTable<SyncReads>, 'countOfReach' | 'idle' | 'reached'> {
  const { syncAgent, license, product } = prepare.names;
  const countOfReach = prepare.column<number>(`SELECT count(*) FROM ${syncAgent} WHERE reach = $1`);
  const idle = prepare.column<number>(
    `SELECT number FROM ${syncAgent} WHERE seen_at < $2 AND ($1::text IS NULL OR reach = $1)
     ORDER BY seen_at LIMIT $3::bigint`,
  );
  const reached = prepare.column<string>(
    `SELECT license_key FROM ${license} WHERE license_key = ANY ($3::text[])
     AND ($2::text IS NULL OR product_key = $2) AND EXISTS (SELECT FROM ${product} AS reached
       WHERE reached.product_key = ${license}.product_key AND reached.account_id = $1)`,
  );
  return {
    countOfReach: async (reach) => (await countOfReach.first(reach)) ?? 0,
    idle: (reach, before, limit) => idle.all(reach, before, limit),
    reached: ({ accountId, productKey }, licenseKeys) => reached.all(accountId, productKey, licenseKeys),
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

export function syncTable(prepare: WritingPrepare): AwaitableTable<SyncTable> {
  const { syncAgent } = prepare.names;
  const add =
    prepare.write(`INSERT INTO ${syncAgent} (agent_id, reach, account_id, product_key, followed, created_at, seen_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7)`);
  const setSeen = prepare.write(`UPDATE ${syncAgent} SET seen_at = $2 WHERE number = $1`);
  const remove = prepare.write(`DELETE FROM ${syncAgent} WHERE number = $1`);
  const follows = followTable(prepare);
  return {
    ...syncReads(prepare),
    ...follows,
    add: ({ agentId, reach, accountId, productKey, followed, createdAt, seenAt }) =>
      add(agentId, reach, accountId, productKey, followed, createdAt, seenAt),
    setSeen,
    async remove(number) {
      await follows.unfollow(number, null);
      remove(number);
    },
  };
}

type FollowMethod = 'follow' | 'unfollow' | 'pruneFollows';

function followTable(prepare: WritingPrepare): Pick<AwaitableTable<SyncTable>, FollowMethod> {
  const { syncAgent, syncFollow } = prepare.names;
  const follow = prepare.changeCount(`INSERT INTO ${syncFollow} (agent, license_key)
     SELECT $1::bigint, key FROM unnest($2::text[]) AS named (key) ON CONFLICT DO NOTHING`);
  const unfollow = prepare.changeCount(
    `DELETE FROM ${syncFollow} WHERE agent = $1 AND ($2::text[] IS NULL OR license_key = ANY ($2::text[]))`,
  );
  const setFollowed = prepare.column<number>(
    `UPDATE ${syncAgent} SET followed = followed + $2::bigint WHERE number = $1 RETURNING followed`,
  );
  const silent = prepare.query<{ number: number }>(
    `SELECT number FROM ${syncAgent} WHERE followed > 0 AND seen_at < $1 ORDER BY number LIMIT 1 FOR UPDATE SKIP LOCKED`,
  );
  const firstKeys = prepare.column<string>(
    `SELECT license_key FROM ${syncFollow} WHERE agent = $1 ORDER BY license_key LIMIT $2::bigint`,
  );
  const changeFollowed = async (number: number, by: number): Promise<number> =>
    (await setFollowed.first(number, by)) ?? 0;
  return {
    follow: async (number, licenseKeys) => await changeFollowed(number, await follow(number, licenseKeys)),
    unfollow: async (number, licenseKeys) =>
      await changeFollowed(number, -(await unfollow(number, licenseKeys))),
    async pruneFollows(before, limit) {
      const agent = await silent.first(before);
      if (agent === null) return 0;
      const keys = await firstKeys.all(agent.number, limit);
      await changeFollowed(agent.number, -(await unfollow(agent.number, keys)));
      // There may be another silent agent.
      return limit;
    },
  };
}
