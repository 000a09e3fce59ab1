import type { LicenseExtra } from '../../../domain/license.ts';
import type { LicenseSnapshot } from '../../../domain/agent/license-snapshot.ts';
import type { SnapshotFilter, SnapshotReads, SnapshotTable } from '../../../service/agent/tables.ts';
import { maxFound, type Search } from '../../../domain/search.ts';
import { columns, type SqlValue } from '../../sql.ts';
import { isFound } from '../../tables/search.ts';
import { termColumns, termsIn, termsOf, type StoredTerms } from '../../tables/terms.ts';
import { afterText, type SqliteSql } from '../statements.ts';
import { hourMs } from '../../../domain/time.ts';

/** The columns that `put` sets. */
type StoredRow = Omit<LicenseSnapshot, 'license' | 'local' | 'epoch' | 'localRevisions'> &
  StoredTerms & {
    licenseKey: string;
    /** The product in the upstream's response; `productId` is the product in the request. */
    productLink: string;
    buyerEmail: string;
    uses: number;
    enabled: boolean;
    createdAt: number;
    /** Null: the response had no members beyond the specification. */
    extra: LicenseExtra | null;
    localUses: number;
    localEnabled: boolean;
    localPending: number;
    revision: number | null;
    epoch: number;
  };
type Row = StoredRow & { shownRevision: number; shownDisabledRevision: number };

const snapshot =
  columns<StoredRow>(`license_key, product_link, buyer_email, uses, enabled BOOL, created_at, extra JSON, ${termColumns},
  local_uses, local_enabled BOOL, local_pending, product_key AS productId, confirmed_at, run, many_writers BOOL,
  missing_since, gone BOOL, read_first BOOL, requested_at AS askedAt, refresh_at, revision, epoch`);

/** The upstream confirms followed keys together. */
const confirmedAt = `CASE followed WHEN 0 THEN confirmed_at ELSE max(confirmed_at, coalesce(
  (SELECT follow.confirmed_at FROM follow WHERE follow.product_key = license_snapshot.product_key), 0)) END`;

const select = `SELECT ${snapshot.list.replace('confirmed_at', confirmedAt)}, shown_revision AS "shownRevision",
  shown_disabled_revision AS "shownDisabledRevision" FROM license_snapshot`;

export function snapshotReads(sql: SqliteSql): SnapshotReads {
  const get = sql.get(`${select} WHERE license_key = $1`, fromRow);
  const byAlias = sql.get(
    `${select} WHERE license_key = (SELECT license_key FROM license_alias WHERE alias = $1)`,
    fromRow,
  );
  const missing = sql.get<{ count: number; since: number | null }>(
    `SELECT count(*) AS count, min(missing_since) AS since FROM (SELECT missing_since FROM license_snapshot
     WHERE missing_since IS NOT NULL AND gone = 0 ORDER BY missing_since LIMIT $1)`,
  );
  const followed = sql.count('SELECT followed AS count FROM license_snapshot WHERE license_key = $1');
  return {
    get: (licenseKey) => get(licenseKey) ?? byAlias(licenseKey),
    ...snapshotLists(sql),
    aliasCount: sql.count('SELECT count(*) AS count FROM license_alias WHERE license_key = $1'),
    ofBuyer: sql.all(`${select} WHERE lower(buyer_email) = lower($1) LIMIT $2`, fromRow),
    latest: sql.column<string>(`SELECT license_key FROM license_snapshot WHERE product_key = $1
     ORDER BY confirmed_at DESC LIMIT $2`),
    toFollow: sql.column<string>(`SELECT license_key FROM license_snapshot
     WHERE product_key = $1 AND followed = 0 AND refresh_at IS NOT NULL AND gone = 0 AND read_first = 0
       AND missing_since IS NULL LIMIT $2`),
    toUnfollow: sql.column<string>(`SELECT license_key FROM license_snapshot
     WHERE product_key = $1 AND followed = 1 AND refresh_at IS NULL
       AND NOT EXISTS (SELECT 1 FROM sync_follow WHERE sync_follow.license_key = license_snapshot.license_key)
     LIMIT $2`),
    lastConfirmedAt: sql.count(`SELECT coalesce(max(${confirmedAt}), 0) AS count FROM license_snapshot`),
    followedCount: sql.count(
      'SELECT count(*) AS count FROM license_snapshot WHERE product_key = $1 AND followed = 1',
    ),
    isFollowed: (licenseKey) => followed(licenseKey) > 0,
    toRefresh: sql.all(
      `${select} WHERE refresh_at IS NOT NULL AND refresh_at <= $1 ORDER BY refresh_at LIMIT $2`,
      fromRow,
    ),
    counts: freshnessCountsRead(sql),
    missing: (limit) => missing(limit) ?? { count: 0, since: null },
  };
}

/** The parameters are product, enabled, buyer, key and cursor, then limit and offset, after the text of a search. */
function snapshotLists(sql: SqliteSql): Pick<SnapshotReads, 'list' | 'count'> {
  // An agent has few products: a scan in the order of keys soon finds enough of each.
  const ofProduct = '($1 IS NULL OR product_key = $1)';
  const rest = `($2 IS NULL OR local_enabled = $2) AND license_key > $5`;
  const ofBuyer = '($3 IS NULL OR lower(buyer_email) = lower($3))';
  const conditions = {
    byKey: `license_key = $4 AND ${ofBuyer} AND ${ofProduct} AND ${rest}`,
    byBuyer: `lower(buyer_email) = lower($3) AND $4 IS NULL AND ${ofProduct} AND ${rest}`,
    any: `$3 IS NULL AND $4 IS NULL AND ${ofProduct} AND ${rest}`,
  };
  const listedAndCounted = (condition: string) => ({
    list: sql.all(`${select} WHERE ${condition} ORDER BY license_key LIMIT $6 OFFSET $7`, fromRow),
    count: sql.count(`SELECT count(*) AS count FROM license_snapshot WHERE ${condition}`),
  });
  const byKey = listedAndCounted(conditions.byKey);
  const byBuyer = listedAndCounted(conditions.byBuyer);
  const any = listedAndCounted(conditions.any);
  const others = `($4 IS NULL OR license_key = $4) AND ${ofBuyer} AND ${ofProduct} AND ${rest}`;
  const found = (keys: Search['keys']) => {
    const isMatch = isFound(sql.dialect, '$6', { keys, key: 'license_key', others: ['buyer_email'] });
    const where = `WHERE ${isMatch} AND ${others}`;
    return {
      list: sql.all(`${select} ${where} ORDER BY license_key LIMIT $7 OFFSET $8`, fromRow),
      count: sql.count(`SELECT count(*) AS count FROM (
        SELECT 1 FROM license_snapshot ${where} LIMIT ${maxFound + 1})`),
    };
  };
  const search = { anywhere: found('anywhere'), shown: found('shown') };
  const statementsFor = ({ licenseKey, buyerEmail }: SnapshotFilter) => {
    if (licenseKey !== undefined) return byKey;
    return buyerEmail === undefined ? any : byBuyer;
  };
  return {
    list(filter, { limit, offset, cursor }) {
      const parameters = [...snapshotParameters(filter), afterText({ limit, offset, cursor })];
      if (filter.search === undefined) return statementsFor(filter).list(...parameters, limit, offset);
      const { keys, text } = filter.search;
      return search[keys].list(...parameters, text, limit, offset);
    },
    count(filter) {
      const parameters = [...snapshotParameters(filter), ''];
      if (filter.search === undefined) return statementsFor(filter).count(...parameters);
      const { keys, text } = filter.search;
      return search[keys].count(...parameters, text);
    },
  };
}

function snapshotParameters({ productId, enabled, buyerEmail, licenseKey }: SnapshotFilter): SqlValue[] {
  return [productId ?? null, enabled ?? null, buyerEmail ?? null, licenseKey ?? null];
}

/** Above this many rows per hour, estimate instead of counting, so as not to block the event loop. */
const maxExactCount = 10_000;

/**
 * The schema keeps a count of each hour. Rows are counted only in the hour that contains a limit of freshness. The recursive
 * query finds each product with one jump through the index.
 */
function freshnessCountsRead(sql: SqliteSql): SnapshotReads['counts'] {
  const inHours = sql.count(
    'SELECT coalesce(sum(count), 0) AS count FROM license_snapshot_count WHERE enabled = $1 AND hour BETWEEN $2 AND $3',
  );
  const inSpan = sql.count(`WITH RECURSIVE products (productId) AS (
       SELECT min(product_key) FROM license_snapshot
       UNION ALL
       SELECT (SELECT min(product_key) FROM license_snapshot WHERE product_key > productId)
       FROM products WHERE productId IS NOT NULL
     )
     SELECT count(*) AS count FROM products CROSS JOIN license_snapshot ON product_key = productId
     WHERE confirmed_at >= $1 AND confirmed_at < $2 AND local_enabled = 1 AND gone = 0`);
  const [first, last] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];
  const enabledSince = (instant: number): number => {
    const hour = Math.trunc(instant / hourMs);
    const end = (hour + 1) * hourMs;
    const ofHour = inHours(1, hour, hour);
    const rest =
      ofHour <= maxExactCount ? inSpan(instant, end) : Math.round((ofHour * (end - instant)) / hourMs);
    return rest + inHours(1, hour + 1, last);
  };
  return (since) => {
    const fresh = enabledSince(since.fresh);
    const stale = enabledSince(since.stale);
    const grace = enabledSince(since.grace);
    return {
      fresh,
      // A commit between two reads could make a difference negative.
      stale: Math.max(0, stale - fresh),
      grace: Math.max(0, grace - stale),
      expired: Math.max(0, inHours(1, first, last) - grace),
      disabled: inHours(0, first, last),
    };
  };
}

export function snapshotTable(sql: SqliteSql): SnapshotTable {
  const addAlias = sql.run(
    'INSERT OR REPLACE INTO license_alias (alias, license_key, added_at) VALUES ($1, $2, $3)',
  );
  const removeOldAliases = sql.run(`DELETE FROM license_alias WHERE alias IN
       (SELECT alias FROM license_alias WHERE license_key = $1
        ORDER BY added_at DESC, alias DESC LIMIT -1 OFFSET $2)`);
  const [shiftConfirmed, shiftAsked] = (['confirmed_at', 'requested_at'] as const).map((column) =>
    sql.run(
      `UPDATE license_snapshot SET ${column} = ${column} - $1
       WHERE ($2 IS NULL OR ${column} > $2) AND ($3 IS NULL OR ${column} <= $3)`,
    ),
  );
  const follow = sql.run('UPDATE license_snapshot SET followed = 1 WHERE license_key = $1');
  const undoDelivery = sql.run(
    'UPDATE license_snapshot SET uses = uses - $2, local_pending = local_pending + $3 WHERE license_key = $1',
  );
  // The date at which the followed keys were confirmed together stays with a key that is not followed any more.
  const stopFollowing = `UPDATE license_snapshot SET confirmed_at = ${confirmedAt}, followed = 0 WHERE followed = 1`;
  const unfollow = sql.run(`${stopFollowing} AND license_key = $1`);
  const unfollowAll = sql.run(`${stopFollowing} AND ($1 IS NULL OR product_key = $1)`);
  return {
    ...snapshotReads(sql),
    put: snapshotPut(sql),
    setFollowed: (licenseKey, isFollowed) => (isFollowed ? follow : unfollow)(licenseKey),
    unfollowAll: (productId) => unfollowAll(productId ?? null),
    setLocal: localChange(sql),
    undoDelivery: (licenseKey, { uses, operations }) => undoDelivery(licenseKey, uses, operations),
    touch: sql.run(
      `UPDATE license_snapshot SET requested_at = $2, refresh_at = coalesce(refresh_at, $3) WHERE license_key = $1`,
    ),
    addAlias(alias, licenseKey, { at, max }) {
      addAlias(alias, licenseKey, at);
      removeOldAliases(licenseKey, max);
    },
    clearDisabledRevisions: sql.run(
      'UPDATE license_snapshot SET shown_disabled_revision = 0 WHERE shown_disabled_revision > 0',
    ),
    moveAliases: sql.run('UPDATE license_alias SET license_key = $2 WHERE license_key = $1'),
    remove: sql.run('DELETE FROM license_snapshot WHERE license_key = $1'),
    restartWaits: sql.run(
      `UPDATE license_snapshot SET refresh_at = min(refresh_at, $1), missing_since = CASE gone WHEN 1 THEN missing_since END
       WHERE refresh_at IS NOT NULL OR missing_since IS NOT NULL`,
    ),
    shiftWaits: sql.run(
      `UPDATE license_snapshot SET refresh_at = refresh_at + $1, missing_since = missing_since + $1
       WHERE refresh_at IS NOT NULL OR missing_since IS NOT NULL`,
    ),
    shiftDates({ byMs, after, until = null }) {
      shiftConfirmed?.(byMs, after, until);
      shiftAsked?.(byMs, after, until);
    },
  };
}

/** The columns on the right have their values from before the statement. */
function shownAfter(uses: string, enabled: string, differs = ''): string {
  return `shown_revision = shown_revision + (local_uses <> ${uses} OR local_enabled <> ${enabled}${differs}),
    shown_disabled_revision = CASE WHEN local_enabled = 1 AND ${enabled} = 0 THEN shown_revision + 1
      ELSE shown_disabled_revision END`;
}

function snapshotPut(sql: SqliteSql): SnapshotTable['put'] {
  const { place, set } = snapshot;
  const terms = ['expires_at', 'grace_until', 'uses_limit', 'terms'];
  const differs = terms.map((column) => ` OR ${column} IS NOT ${place(column)}`).join('');
  const isShown = shownAfter(place('local_uses'), place('local_enabled'), differs);
  const own = 'license_key';
  // Most responses do not change `refresh_at` and the buyer. Setting them would rewrite their indexes.
  const confirm = sql.changes(
    `UPDATE license_snapshot SET ${set([own, 'refresh_at', 'buyer_email'])}, ${isShown}
     WHERE license_key = ${place(own)} AND refresh_at IS ${place('refresh_at')}
       AND buyer_email = ${place('buyer_email')}`,
  );
  const put = sql.run(`${snapshot.insert('license_snapshot')}
     ON CONFLICT (license_key) DO UPDATE SET ${set([own])}, ${isShown}`);
  return (given) => {
    const values = snapshot.values(rowOf(given));
    if (confirm(...values) === 0) put(...values);
  };
}

function localChange(sql: SqliteSql): SnapshotTable['setLocal'] {
  // Most changes do not change `local_enabled`. Setting it would rewrite its index.
  const setCount = sql.changes(`UPDATE license_snapshot SET local_uses = $2, local_pending = $4,
     shown_revision = shown_revision + (local_uses <> $2)
     WHERE license_key = $1 AND local_enabled = $3`);
  const setAll = sql.run(`UPDATE license_snapshot SET local_uses = $2, local_enabled = $3, local_pending = $4,
     ${shownAfter('$2', '$3')} WHERE license_key = $1`);
  return (licenseKey, { uses, enabled, pending }) => {
    if (setCount(licenseKey, uses, enabled, pending) === 0) setAll(licenseKey, uses, enabled, pending);
  };
}

function fromRow(raw: never): LicenseSnapshot {
  const row = snapshot.from(raw) as Row;
  return {
    license: {
      licenseKey: row.licenseKey,
      productKey: row.productLink,
      buyerEmail: row.buyerEmail,
      uses: row.uses,
      enabled: row.enabled,
      createdAt: row.createdAt,
      ...(row.revision !== null && { revision: row.revision }),
      ...(row.extra !== null && { extra: row.extra }),
      ...termsIn(row),
    },
    local: { uses: row.localUses, enabled: row.localEnabled, pending: row.localPending },
    productId: row.productId,
    confirmedAt: row.confirmedAt,
    run: row.run,
    manyWriters: row.manyWriters,
    missingSince: row.missingSince,
    gone: row.gone,
    readFirst: row.readFirst,
    askedAt: row.askedAt,
    refreshAt: row.refreshAt,
    epoch: row.epoch,
    localRevisions: { revision: row.shownRevision, disabledRevision: row.shownDisabledRevision },
  };
}

function rowOf(given: LicenseSnapshot): StoredRow {
  const { license, local, epoch = 0 } = given;
  const { extra = null, revision = null } = license;
  return {
    ...given,
    ...license,
    ...termsOf(license),
    productLink: license.productKey,
    extra,
    revision,
    epoch,
    localUses: local.uses,
    localEnabled: local.enabled,
    localPending: local.pending,
  };
}
