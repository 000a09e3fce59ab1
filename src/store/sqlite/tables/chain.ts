import type { ChainReads, ChainTable } from '../../../service/sync/tables.ts';
import type { Prepare } from '../statements.ts';
import { followedFrom, followedParts, followedState, type FollowedRow } from './sync.ts';

/** A followed key was confirmed with its product, if that is later. */
const confirmedAt = `CASE snapshot.followed WHEN 0 THEN snapshot.confirmed_at
  ELSE max(snapshot.confirmed_at, coalesce(follow.confirmed_at, 0)) END`;

const isVisible = 'snapshot.product_key IN (SELECT value FROM json_each(?3))';

/** The earliest confirmation of a license that the agent below follows; if it follows none, that of its products. */
const allConfirmedAt = `coalesce(
  (SELECT min(${confirmedAt}) FROM sync_follow
    JOIN license_snapshot AS snapshot ON snapshot.license_key = sync_follow.license_key
    LEFT JOIN follow ON follow.product_key = snapshot.product_key
    WHERE sync_follow.agent = state.agent AND snapshot.gone = 0 AND ${isVisible}),
  (SELECT min(follow.confirmed_at) FROM json_each(?3)
    CROSS JOIN follow ON follow.product_key = json_each.value),
  0)`;

const selectFollowed = `WITH ${followedParts},
  confirmed AS MATERIALIZED (SELECT ${allConfirmedAt} AS at FROM state)
  SELECT ${followedState}, confirmed.at AS confirmedAt,
    snapshot.license_key AS licenseKey, snapshot.product_link AS productKey, snapshot.buyer_email AS buyerEmail,
    snapshot.local_uses AS uses, snapshot.local_enabled AS enabled, snapshot.created_at AS createdAt,
    snapshot.shown_revision AS revision
  FROM state JOIN confirmed LEFT JOIN wanted ON true
    LEFT JOIN license_snapshot AS snapshot
      ON snapshot.license_key = wanted.license_key AND snapshot.gone = 0 AND ${isVisible}`;

export function chainReads(prepare: Prepare): ChainReads {
  const followed = prepare.query<FollowedRow & { confirmedAt: number }>(selectFollowed);
  return {
    followed({ agentId, reach, productIds, position, keys }) {
      const after = position === null ? null : Number(position);
      const products = JSON.stringify(productIds);
      const rows = followed.all(agentId, reach, products, null, after, JSON.stringify(keys));
      return { ...followedFrom(rows), confirmedAt: rows[0]?.confirmedAt ?? 0 };
    },
  };
}

export function chainTable(prepare: Prepare): ChainTable {
  // Setting `refresh_at` would rewrite its index.
  const asked = (keys: string) => ({
    touch: prepare.change(`UPDATE license_snapshot SET requested_at = :askedAt
     WHERE requested_at < :before AND license_key IN (${keys})`),
    refresh: prepare.change(`UPDATE license_snapshot SET refresh_at = :refreshAt
     WHERE refresh_at IS NULL AND license_key IN (${keys})`),
  });
  const listed = asked('SELECT value FROM json_each(:licenseKeys)');
  const all = asked('SELECT license_key FROM sync_follow WHERE agent = :agent');
  return {
    ...chainReads(prepare),
    touch(agent, licenseKeys, at) {
      const row = { ...at, agent, licenseKeys: JSON.stringify(licenseKeys ?? []) };
      const { touch, refresh } = licenseKeys === null ? all : listed;
      touch(row);
      refresh(row);
    },
  };
}
