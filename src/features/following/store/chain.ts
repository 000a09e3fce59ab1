import type { License } from '../../../domain/license.ts';
import type { ChainReads, ChainTable } from '../service/tables.ts';
import { columns, type Sql, type WritingSql } from '../../../store/sql.ts';
import {
  followedFrom,
  followedParts,
  followedState,
  numberIn,
  type FollowedRow,
  type Positions,
} from './sqlite.ts';

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

const shown = columns<License>(
  `license_key, product_link AS productKey, buyer_email, local_uses AS uses, local_enabled AS enabled BOOL, created_at,
    shown_revision AS revision`,
  'snapshot',
);

const selectFollowed = (epoch: string): string => `WITH ${followedParts(epoch)},
  confirmed AS MATERIALIZED (SELECT ${allConfirmedAt} AS at FROM state)
  SELECT ${followedState}, confirmed.at AS "confirmedAt",
    ${shown.list}
  FROM state JOIN confirmed LEFT JOIN wanted ON true
    LEFT JOIN license_snapshot AS snapshot
      ON snapshot.license_key = wanted.license_key AND snapshot.gone = 0 AND ${isVisible}`;

export function chainReads(sql: Sql<'sqlite'>, positions: Positions): ChainReads {
  const followed = sql.all(
    selectFollowed(sql.dialect.epoch),
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
