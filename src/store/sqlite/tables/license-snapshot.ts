import type { LicenseExtra } from '../../../domain/license.ts';
import type { LicenseSnapshot } from '../../../domain/agent/license-snapshot.ts';
import type {
  SnapshotFilter,
  SnapshotReads,
  SnapshotTable,
  PreloadReads,
  PreloadTable,
} from '../../../service/agent/tables.ts';
import { afterText, bit, type Bit, type Prepare } from '../statements.ts';
import { hasManyIn, searchIn, searchParameters } from './search.ts';
import type { PreloadKey, PreloadProgress } from '../../../domain/agent/preload.ts';

type Row = {
  licenseKey: string;
  /** The product in the upstream's response; `productId` is the product in the request. */
  productLink: string;
  buyerEmail: string;
  uses: number;
  enabled: Bit;
  createdAt: number;
  /** JSON; null: the response had no members beyond the specification. */
  extra: string | null;
  localUses: number;
  localEnabled: Bit;
  localPending: number;
  productId: string;
  confirmedAt: number;
  run: number;
  manyWriters: Bit;
  missingSince: number | null;
  gone: Bit;
  readFirst: Bit;
  askedAt: number;
  refreshAt: number | null;
  revision: number | null;
  epoch: number;
  shownRevision: number;
  shownDisabledRevision: number;
};

/** The upstream confirms followed keys together. */
const confirmedAt = `CASE followed WHEN 0 THEN confirmed_at ELSE max(confirmed_at, coalesce(
  (SELECT follow.confirmed_at FROM follow WHERE follow.product_key = license_snapshot.product_key), 0)) END`;

const select = `SELECT license_key AS licenseKey, product_link AS productLink, buyer_email AS buyerEmail, uses,
  enabled, created_at AS createdAt, extra, local_uses AS localUses, local_enabled AS localEnabled,
  local_pending AS localPending, product_key AS productId, ${confirmedAt} AS confirmedAt, run,
  many_writers AS manyWriters, missing_since AS missingSince, gone,
  read_first AS readFirst, requested_at AS askedAt, refresh_at AS refreshAt, revision, epoch,
  shown_revision AS shownRevision, shown_disabled_revision AS shownDisabledRevision FROM license_snapshot`;

export function snapshotReads(prepare: Prepare): SnapshotReads {
  const get = prepare.query(`${select} WHERE license_key = ?`, fromRow);
  const byAlias = prepare.query(
    `${select} WHERE license_key = (SELECT license_key FROM license_alias WHERE alias = ?)`,
    fromRow,
  );
  const missing = prepare.query<{ count: number; since: number | null }>(
    `SELECT count(*) AS count, min(missing_since) AS since FROM (SELECT missing_since FROM license_snapshot
     WHERE missing_since IS NOT NULL AND gone = 0 ORDER BY missing_since LIMIT ?)`,
  );
  const followed = prepare.count('SELECT followed AS count FROM license_snapshot WHERE license_key = ?');
  return {
    get: (licenseKey) => get.first(licenseKey) ?? byAlias.first(licenseKey),
    ...snapshotLists(prepare),
    aliasCount: prepare.count('SELECT count(*) AS count FROM license_alias WHERE license_key = ?'),
    ofBuyer: prepare.query(`${select} WHERE lower(buyer_email) = lower(?) LIMIT ?`, fromRow).all,
    latest: prepare.column<string>(`SELECT license_key FROM license_snapshot WHERE product_key = ?
     ORDER BY confirmed_at DESC LIMIT ?`).all,
    toFollow: prepare.column<string>(`SELECT license_key FROM license_snapshot
     WHERE product_key = ? AND followed = 0 AND refresh_at IS NOT NULL AND gone = 0 AND read_first = 0
       AND missing_since IS NULL LIMIT ?`).all,
    toUnfollow: prepare.column<string>(`SELECT license_key FROM license_snapshot
     WHERE product_key = ? AND followed = 1 AND refresh_at IS NULL
       AND NOT EXISTS (SELECT 1 FROM sync_follow WHERE sync_follow.license_key = license_snapshot.license_key)
     LIMIT ?`).all,
    lastConfirmedAt: prepare.count(`SELECT coalesce(max(${confirmedAt}), 0) AS count FROM license_snapshot`),
    followedCount: prepare.count(
      'SELECT count(*) AS count FROM license_snapshot WHERE product_key = ? AND followed = 1',
    ),
    isFollowed: (licenseKey) => followed(licenseKey) > 0,
    toRefresh: prepare.query(
      `${select} WHERE refresh_at IS NOT NULL AND refresh_at <= ? ORDER BY refresh_at LIMIT ?`,
      fromRow,
    ).all,
    counts: freshnessCountsRead(prepare),
    missing: (limit) => missing.first(limit) ?? { count: 0, since: null },
  };
}

/** The parameters are product, enabled, buyer, key and cursor, then limit and offset or those of the search. */
function snapshotLists(prepare: Prepare): Pick<SnapshotReads, 'list' | 'count'> {
  // An agent has few products: a scan in the order of keys soon finds enough of each.
  const ofProduct = '(?1 IS NULL OR product_key = ?1)';
  const rest = `(?2 IS NULL OR local_enabled = ?2) AND license_key > ?5`;
  const ofBuyer = '(?3 IS NULL OR lower(buyer_email) = lower(?3))';
  const conditions = {
    byKey: `license_key = ?4 AND ${ofBuyer} AND ${ofProduct} AND ${rest}`,
    byBuyer: `lower(buyer_email) = lower(?3) AND ?4 IS NULL AND ${ofProduct} AND ${rest}`,
    any: `?3 IS NULL AND ?4 IS NULL AND ${ofProduct} AND ${rest}`,
  };
  const listedAndCounted = (condition: string) => ({
    list: prepare.query(`${select} WHERE ${condition} ORDER BY license_key LIMIT ?6 OFFSET ?7`, fromRow),
    count: prepare.count(`SELECT count(*) AS count FROM license_snapshot WHERE ${condition}`),
  });
  const byKey = listedAndCounted(conditions.byKey);
  const byBuyer = listedAndCounted(conditions.byBuyer);
  const any = listedAndCounted(conditions.any);
  const { sorted, isMatch, ...counts } = searchIn('license_snapshot', 6);
  const others = `(?4 IS NULL OR license_key = ?4) AND ${ofBuyer} AND ${ofProduct} AND ${rest}`;
  const page = 'ORDER BY license_key LIMIT ?8 OFFSET ?9';
  const scan = prepare.query(`${select} WHERE ${isMatch} AND ${others} ${page}`, fromRow);
  const few = prepare.query(
    `${sorted.tables} ${select.replace(/ license_snapshot$/, ` ${sorted.from}`)}
     WHERE ${others.replace('license_key > ?5', 'found_key > ?5')} ${page.replace('license_key', 'found_key')}`,
    fromRow,
  );
  const countFound = prepare.count(counts.count);
  const countAmong = prepare.count(counts.countAmong(others));
  const hasMany = hasManyIn(prepare, 'license_snapshot');
  const statementsFor = ({ licenseKey, buyerEmail }: SnapshotFilter) => {
    if (licenseKey !== undefined) return byKey;
    return buyerEmail === undefined ? any : byBuyer;
  };
  return {
    list(filter, { limit, offset, cursor }) {
      const parameters = [...snapshotParameters(filter), afterText({ limit, offset, cursor })];
      if (filter.search === undefined) return statementsFor(filter).list.all(...parameters, limit, offset);
      const searched = [...parameters, ...searchParameters(filter.search), limit, offset];
      return (hasMany(filter.search) ? scan : few).all(...searched);
    },
    count(filter) {
      const parameters = snapshotParameters(filter);
      if (filter.search === undefined) return statementsFor(filter).count(...parameters, '');
      const isFiltered = parameters.some((value) => value !== null);
      const countOf = isFiltered ? countAmong : countFound;
      return countOf(...parameters, '', ...searchParameters(filter.search));
    },
  };
}

function snapshotParameters({
  productId,
  enabled,
  buyerEmail,
  licenseKey,
}: SnapshotFilter): (string | number | null)[] {
  return [
    productId ?? null,
    enabled === undefined ? null : bit(enabled),
    buyerEmail ?? null,
    licenseKey ?? null,
  ];
}

const hourMs = 3_600_000;
/** Above this many rows per hour, estimate instead of counting, so as not to block the event loop. */
const maxExactCount = 10_000;

/**
 * The schema keeps a count of each hour. Rows are counted only in the hour that contains a limit of freshness. The recursive
 * query finds each product with one jump through the index.
 */
function freshnessCountsRead(prepare: Prepare): SnapshotReads['counts'] {
  const inHours = prepare.count(
    'SELECT coalesce(sum(count), 0) AS count FROM license_snapshot_count WHERE enabled = ? AND hour BETWEEN ? AND ?',
  );
  const inSpan = prepare.count(`WITH RECURSIVE products (productId) AS (
       SELECT min(product_key) FROM license_snapshot
       UNION ALL
       SELECT (SELECT min(product_key) FROM license_snapshot WHERE product_key > productId)
       FROM products WHERE productId IS NOT NULL
     )
     SELECT count(*) AS count FROM products CROSS JOIN license_snapshot ON product_key = productId
     WHERE confirmed_at >= ? AND confirmed_at < ? AND local_enabled = 1 AND gone = 0`);
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

export function snapshotTable(prepare: Prepare): SnapshotTable {
  const touch =
    prepare.change(`UPDATE license_snapshot SET requested_at = :askedAt, refresh_at = coalesce(refresh_at, :refreshAt)
     WHERE license_key = :licenseKey`);
  const addAlias = prepare.change(
    'INSERT OR REPLACE INTO license_alias (alias, license_key, added_at) VALUES (:alias, :licenseKey, :at)',
  );
  const removeOldAliases = prepare.change(`DELETE FROM license_alias WHERE alias IN
       (SELECT alias FROM license_alias WHERE license_key = :licenseKey
        ORDER BY added_at DESC, alias DESC LIMIT -1 OFFSET :max)`);
  const clearDisabledRevisions = prepare.change(
    'UPDATE license_snapshot SET shown_disabled_revision = 0 WHERE shown_disabled_revision > 0',
  );
  const moveAliases = prepare.change('UPDATE license_alias SET license_key = :to WHERE license_key = :from');
  const remove = prepare.change('DELETE FROM license_snapshot WHERE license_key = :licenseKey');
  const restartWaits =
    prepare.change(`UPDATE license_snapshot SET refresh_at = min(refresh_at, :at), missing_since = CASE gone WHEN 1 THEN missing_since END
     WHERE refresh_at IS NOT NULL OR missing_since IS NOT NULL`);
  const shiftWaits =
    prepare.change(`UPDATE license_snapshot SET refresh_at = refresh_at + :byMs, missing_since = missing_since + :byMs
     WHERE refresh_at IS NOT NULL OR missing_since IS NOT NULL`);
  const [shiftConfirmed, shiftAsked] = (['confirmed_at', 'requested_at'] as const).map((column) =>
    prepare.change(
      `UPDATE license_snapshot SET ${column} = ${column} - :byMs
       WHERE (:after IS NULL OR ${column} > :after) AND (:until IS NULL OR ${column} <= :until)`,
    ),
  );
  const follow = prepare.change('UPDATE license_snapshot SET followed = 1 WHERE license_key = :licenseKey');
  // The date at which the followed keys were confirmed together stays with a key that is not followed any more.
  const unfollow = prepare.change(
    `UPDATE license_snapshot SET confirmed_at = ${confirmedAt}, followed = 0
     WHERE license_key = :licenseKey AND followed = 1`,
  );
  const unfollowAll = prepare.change(
    `UPDATE license_snapshot SET confirmed_at = ${confirmedAt}, followed = 0
     WHERE followed = 1 AND (:productId IS NULL OR product_key = :productId)`,
  );
  return {
    ...snapshotReads(prepare),
    put: snapshotPut(prepare),
    setFollowed: (licenseKey, isFollowed) => void (isFollowed ? follow : unfollow)({ licenseKey }),
    unfollowAll: (productId) => void unfollowAll({ productId: productId ?? null }),
    setLocal: localChange(prepare),
    touch: (licenseKey, askedAt, refreshAt) => touch({ licenseKey, askedAt, refreshAt }),
    addAlias(alias, licenseKey, { at, max }) {
      addAlias({ alias, licenseKey, at });
      removeOldAliases({ licenseKey, max });
    },
    clearDisabledRevisions: () => void clearDisabledRevisions({}),
    moveAliases: (from, to) => moveAliases({ from, to }),
    remove: (licenseKey) => remove({ licenseKey }),
    restartWaits: (at) => restartWaits({ at }),
    shiftWaits: (byMs) => shiftWaits({ byMs }),
    shiftDates(shift) {
      shiftConfirmed?.({ until: null, ...shift });
      shiftAsked?.({ until: null, ...shift });
    },
  };
}

/** The columns on the right have their values from before the statement. */
function shownAfter(uses: string, enabled: string): string {
  return `shown_revision = shown_revision + (local_uses <> ${uses} OR local_enabled <> ${enabled}),
    shown_disabled_revision = CASE WHEN local_enabled = 1 AND ${enabled} = 0 THEN shown_revision + 1
      ELSE shown_disabled_revision END`;
}

function snapshotPut(prepare: Prepare): SnapshotTable['put'] {
  const assignments = `product_link = :productLink, uses = :uses, enabled = :enabled,
    created_at = :createdAt, extra = :extra, local_uses = :localUses, local_enabled = :localEnabled,
    local_pending = :localPending, product_key = :productId, confirmed_at = :confirmedAt, run = :run,
    many_writers = :manyWriters, missing_since = :missingSince, gone = :gone, read_first = :readFirst,
    requested_at = :askedAt, revision = :revision, epoch = :epoch, ${shownAfter(':localUses', ':localEnabled')}`;
  // Most responses do not change `refresh_at` and the buyer. Setting them would rewrite their indexes.
  const confirm = prepare.change(
    `UPDATE license_snapshot SET ${assignments}
     WHERE license_key = :licenseKey AND refresh_at IS :refreshAt AND buyer_email = :buyerEmail`,
  );
  const put =
    prepare.change(`INSERT INTO license_snapshot (license_key, product_link, buyer_email, uses, enabled, created_at,
       extra, local_uses, local_enabled, local_pending, product_key, confirmed_at, run, many_writers,
       missing_since, gone, read_first, requested_at, refresh_at, revision, epoch)
     VALUES (:licenseKey, :productLink, :buyerEmail, :uses, :enabled, :createdAt,
       :extra, :localUses, :localEnabled, :localPending, :productId, :confirmedAt, :run, :manyWriters,
       :missingSince, :gone, :readFirst, :askedAt, :refreshAt, :revision, :epoch)
     ON CONFLICT (license_key) DO UPDATE SET ${assignments}, buyer_email = :buyerEmail,
       refresh_at = :refreshAt`);
  return (snapshot) => {
    const columns = columnsOf(snapshot);
    if (confirm(columns).changes === 0) put(columns);
  };
}

function localChange(prepare: Prepare): SnapshotTable['setLocal'] {
  // Most changes do not change `local_enabled`. Setting it would rewrite its index.
  const setCount = prepare.change(`UPDATE license_snapshot SET local_uses = :uses, local_pending = :pending,
     shown_revision = shown_revision + (local_uses <> :uses)
     WHERE license_key = :licenseKey AND local_enabled = :enabled`);
  const setAll =
    prepare.change(`UPDATE license_snapshot SET local_uses = :uses, local_enabled = :enabled, local_pending = :pending,
     ${shownAfter(':uses', ':enabled')}
     WHERE license_key = :licenseKey`);
  return (licenseKey, { uses, enabled, pending }) => {
    const row = { licenseKey, uses, enabled, pending };
    if (setCount(row).changes === 0) setAll(row);
  };
}

function fromRow(row: Row): LicenseSnapshot {
  return {
    license: {
      licenseKey: row.licenseKey,
      productKey: row.productLink,
      buyerEmail: row.buyerEmail,
      uses: row.uses,
      enabled: row.enabled === 1,
      createdAt: row.createdAt,
      ...(row.revision !== null && { revision: row.revision }),
      ...(row.extra !== null && { extra: JSON.parse(row.extra) as LicenseExtra }),
    },
    local: { uses: row.localUses, enabled: row.localEnabled === 1, pending: row.localPending },
    productId: row.productId,
    confirmedAt: row.confirmedAt,
    run: row.run,
    manyWriters: row.manyWriters === 1,
    missingSince: row.missingSince,
    gone: row.gone === 1,
    readFirst: row.readFirst === 1,
    askedAt: row.askedAt,
    refreshAt: row.refreshAt,
    epoch: row.epoch,
    shown: { revision: row.shownRevision, disabledRevision: row.shownDisabledRevision },
  };
}

function columnsOf(snapshot: LicenseSnapshot) {
  const { license, local, epoch = 0, shown: _, ...columns } = snapshot;
  const {
    licenseKey,
    productKey: productLink,
    buyerEmail,
    uses,
    enabled,
    createdAt,
    extra,
    revision,
  } = license;
  return {
    ...columns,
    epoch,
    revision: revision ?? null,
    licenseKey,
    productLink,
    buyerEmail,
    uses,
    enabled,
    createdAt,
    extra: extra === undefined ? null : JSON.stringify(extra),
    localUses: local.uses,
    localEnabled: local.enabled,
    localPending: local.pending,
  };
}

export function preloadReads(prepare: Prepare): PreloadReads {
  const left = prepare.query<PreloadKey>(
    `SELECT license_key AS licenseKey, product_key AS productId FROM preload
     WHERE is_found IS NULL ORDER BY postponed, id LIMIT ?`,
  );
  const progress = prepare.query<PreloadProgress>('SELECT done, failed, left FROM preload_count');
  return {
    left: (limit) => left.all(limit),
    progress: () => progress.first() ?? { done: 0, failed: 0, left: 0 },
  };
}

export function preloadTable(prepare: Prepare): PreloadTable {
  const finish = prepare.change(
    'UPDATE preload SET is_found = :isFound WHERE license_key = :licenseKey AND is_found IS NULL',
  );
  const postpone = prepare.change(
    'UPDATE preload SET postponed = postponed + 1 WHERE license_key = :licenseKey AND is_found IS NULL',
  );
  // Without a condition and triggers, SQLite clears a table of any size at once.
  const clear = prepare.change('DELETE FROM preload');
  const resetCounts = prepare.change('UPDATE preload_count SET done = 0, failed = 0, left = 0');
  return {
    ...preloadReads(prepare),
    add: prepare.change(`INSERT INTO preload (license_key, product_key) VALUES (:licenseKey, :productId)
     ON CONFLICT (license_key) DO UPDATE SET product_key = excluded.product_key, is_found = NULL, postponed = 0`),
    finish: (licenseKey, isFound) => finish({ licenseKey, isFound }),
    postpone: (licenseKey) => postpone({ licenseKey }),
    clear() {
      clear({});
      resetCounts({});
    },
  };
}
