import type { License } from '../../../domain/license.ts';
import type { FollowedRead, SyncAgent, SyncReads, SyncTable } from '../../../service/sync/tables.ts';
import { changesPerRead } from '../../../domain/sync/follow.ts';
import { afterNumber, ofAccount, ofTenant, type Bit, type Prepare } from '../statements.ts';

const selectAgent = `SELECT number, agent_id AS agentId, reach, account_id AS accountId, product_key AS productKey,
  followed, created_at AS createdAt, seen_at AS seenAt FROM sync_agent`;

/** The end of the history. The table of changes has one row for each license, so its last row may have been replaced. */
const lastNumber = "coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'license_change'), 0)";
const epoch = "(SELECT value FROM setting WHERE name = 'sync_epoch')";

export type FollowedRow = {
  epoch: string;
  end: number;
  scanned: number;
  last: number;
  wantedKey: string | null;
} & Omit<License, 'licenseKey' | 'enabled'> & { licenseKey: string | null; enabled: Bit; revision: number };

/**
 * One statement, so that everything is from the same instant. It reads the changes of all agents after a number, up to a
 * limit, and then keeps those that this agent follows.
 * `?1` and `?2`: the agent and its reach; `?5`: the number, or null; `?6`: the keys that are read in any case.
 */
export const followedParts = `
  state AS MATERIALIZED (SELECT ${epoch} AS epoch, ${lastNumber} AS end,
    (SELECT number FROM sync_agent WHERE agent_id = ?1 AND reach = ?2) AS agent),
  scanned AS MATERIALIZED (SELECT number, license_key FROM license_change
    WHERE ?5 IS NOT NULL AND number > ?5 ORDER BY number LIMIT ${changesPerRead}),
  wanted AS (
    SELECT scanned.license_key FROM scanned, state WHERE EXISTS (SELECT 1 FROM sync_follow
      WHERE sync_follow.agent = state.agent AND sync_follow.license_key = scanned.license_key)
    UNION SELECT value FROM json_each(?6))`;

export const followedState = `state.epoch, state.end,
  (SELECT count(*) FROM scanned) AS scanned, coalesce((SELECT max(number) FROM scanned), 0) AS last,
  wanted.license_key AS wantedKey`;

const selectFollowed = `WITH ${followedParts}
  SELECT ${followedState},
    license.license_key AS licenseKey, product_key AS productKey, buyer_email AS buyerEmail, uses, enabled,
    created_at AS createdAt, revision
  FROM state LEFT JOIN wanted ON true
    LEFT JOIN license ON license.license_key = wanted.license_key AND ${ofTenant(3, 4)}`;

export function syncReads(prepare: Prepare): SyncReads {
  const agent = prepare.query<SyncAgent>(`${selectAgent} WHERE agent_id = ? AND reach = ?`);
  const list = prepare.query<SyncAgent>(
    `${selectAgent} WHERE ${ofAccount} AND number > ?2 ORDER BY number LIMIT ?3 OFFSET ?4`,
  );
  const count = prepare.count(`SELECT count(*) AS count FROM sync_agent WHERE ${ofAccount}`);
  const countOfReach = prepare.count('SELECT count(*) AS count FROM sync_agent WHERE reach = ?');
  const idle = prepare.column<number>(
    `SELECT number FROM sync_agent WHERE seen_at < ?2 AND (?1 IS NULL OR reach = ?1)
     ORDER BY seen_at LIMIT ?3`,
  );
  const reached = prepare.column<string>(
    `SELECT license_key FROM license WHERE license_key IN (SELECT value FROM json_each(?3)) AND ${ofTenant(1, 2)}`,
  );
  const readEpoch = prepare.column<string>(`SELECT ${epoch}`);
  const end = prepare.count(`SELECT ${lastNumber}`);
  const followed = prepare.query<FollowedRow>(selectFollowed);
  const changed = prepare.query<{ number: number; agent: number | null }>(
    `SELECT scanned.number, sync_follow.agent FROM (
       SELECT number, license_key FROM license_change WHERE number > ? ORDER BY number LIMIT ${changesPerRead}
     ) AS scanned LEFT JOIN sync_follow ON sync_follow.license_key = scanned.license_key`,
  );
  return {
    epoch: () => readEpoch.first() ?? '',
    agent: (agentId, reach) => agent.first(agentId, reach),
    byNumber: prepare.query<SyncAgent>(`${selectAgent} WHERE number = ?`).first,
    list: ({ tenant }, page) =>
      list.all(tenant?.accountId ?? null, afterNumber(page), page.limit, page.offset),
    count: ({ tenant }) => count(tenant?.accountId ?? null),
    countOfReach,
    idle: (reach, before, limit) => idle.all(reach, before, limit),
    reached: ({ accountId, productKey }, licenseKeys) =>
      reached.all(accountId, productKey, JSON.stringify(licenseKeys)),
    isPosition: (position) => /^\d{1,15}$/.test(position) && Number(position) <= end(),
    followed({ agentId, reach, tenant, position, keys }) {
      const after = position === null ? null : Number(position);
      const wanted = JSON.stringify(keys);
      return followedFrom(followed.all(agentId, reach, tenant.accountId, tenant.productKey, after, wanted));
    },
    followers(position) {
      const last = end();
      if (position === null) return { position: String(last), hasMore: false, agents: [] };
      const rows = changed.all(Number(position));
      const numbers = new Set(rows.map(({ number }) => number));
      const hasMore = numbers.size === changesPerRead;
      const agents = new Set(rows.flatMap(({ agent: follower }) => follower ?? []));
      const at = hasMore ? Math.max(...numbers) : Math.max(last, ...numbers);
      return { position: String(at), hasMore, agents: [...agents] };
    },
  };
}

export function followedFrom(rows: readonly FollowedRow[]): FollowedRead {
  const [state] = rows;
  if (state === undefined) throw new Error('the state of an agent has no row');
  const hasMore = state.scanned === changesPerRead;
  const licenses = rows.flatMap(
    ({ licenseKey, productKey, buyerEmail, uses, enabled, createdAt, revision }) =>
      licenseKey === null
        ? []
        : [
            {
              license: { licenseKey, productKey, buyerEmail, uses, enabled: enabled === 1, createdAt },
              revision,
            },
          ],
  );
  return {
    epoch: state.epoch,
    position: String(hasMore ? state.last : state.end),
    hasMore,
    licenses,
    absent: rows.flatMap(({ wantedKey, licenseKey }) => (licenseKey === null ? (wantedKey ?? []) : [])),
  };
}

export function syncTable(prepare: Prepare): SyncTable {
  const add =
    prepare.change(`INSERT INTO sync_agent (agent_id, reach, account_id, product_key, followed, created_at, seen_at)
     VALUES (:agentId, :reach, :accountId, :productKey, :followed, :createdAt, :seenAt)`);
  const setSeen = prepare.change('UPDATE sync_agent SET seen_at = :seenAt WHERE number = :number');
  const remove = prepare.change('DELETE FROM sync_agent WHERE number = :number');
  const reads = syncReads(prepare);
  const follows = followTable(prepare, reads);
  return {
    ...reads,
    ...follows,
    add: (agent) => void add(agent),
    setSeen: (number, seenAt) => void setSeen({ number, seenAt }),
    remove(number) {
      follows.unfollow(number, null);
      remove({ number });
    },
  };
}

type FollowMethod = 'follow' | 'unfollow' | 'pruneFollows';

function followTable(prepare: Prepare, reads: Pick<SyncReads, 'byNumber'>): Pick<SyncTable, FollowMethod> {
  const follow = prepare.change(`INSERT INTO sync_follow (agent, license_key)
     SELECT :number, value FROM json_each(:licenseKeys) WHERE true ON CONFLICT DO NOTHING`);
  const unfollow = prepare.change(`DELETE FROM sync_follow
     WHERE agent = :number AND license_key IN (SELECT value FROM json_each(:licenseKeys))`);
  const unfollowAll = prepare.change('DELETE FROM sync_follow WHERE agent = :number');
  const setFollowed = prepare.change(
    'UPDATE sync_agent SET followed = followed + :by WHERE number = :number',
  );
  const silent = prepare.query<{ number: number; licenseKeys: string }>(
    `SELECT number, (SELECT json_group_array(license_key) FROM
       (SELECT license_key FROM sync_follow WHERE agent = number LIMIT ?2)) AS licenseKeys
     FROM sync_agent WHERE followed > 0 AND seen_at < ?1 LIMIT 1`,
  );
  const followedNow = (number: number): number => reads.byNumber(number)?.followed ?? 0;
  const removeFollows = (number: number, licenseKeys: string): void => {
    setFollowed({ number, by: -unfollow({ number, licenseKeys }).changes });
  };
  return {
    follow(number, licenseKeys) {
      const { changes } = follow({ number, licenseKeys: JSON.stringify(licenseKeys) });
      setFollowed({ number, by: changes });
      return followedNow(number);
    },
    unfollow(number, licenseKeys) {
      if (licenseKeys === null) setFollowed({ number, by: -unfollowAll({ number }).changes });
      else removeFollows(number, JSON.stringify(licenseKeys));
      return followedNow(number);
    },
    pruneFollows(before, limit) {
      const [agent] = silent.all(before, limit);
      if (agent === undefined) return 0;
      removeFollows(agent.number, agent.licenseKeys);
      // There may be another silent agent.
      return limit;
    },
  };
}
