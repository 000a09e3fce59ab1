import { maxHistoryEntries } from '../../../../domain/license.ts';
import { adminTokenId } from '../../../../domain/access/principal.ts';

/** A value in SQLite. */
export type Value = string | number | null;

/**
 * A table with the same name on both engines. Rows are compared in SQLite's form: text, numbers and null, with booleans
 * as 0 and 1.
 */
export type MovedTable = {
  readonly name: string;
  /** The first `keyLength` columns are the primary key, which sorts the rows. */
  readonly columns: readonly string[];
  readonly keyLength: number;
  readonly booleans: readonly string[];
  /** SQL for columns that SQLite does not have. */
  readonly computed: Readonly<Record<string, string>>;
  /** Which rows are moved. */
  readonly where: string;
};

type Details = Partial<Pick<MovedTable, 'keyLength' | 'computed' | 'where'>> & { booleans?: string };

function table(name: string, columns: string, { booleans = '', ...details }: Details = {}): MovedTable {
  const base = { keyLength: 1, computed: {}, where: 'true' };
  return { name, columns: columns.split(' '), booleans: booleans.split(' '), ...base, ...details };
}

/** SQLite trims old changes in batches, PostgreSQL at once. So only the changes that PostgreSQL keeps are moved. */
const lastChange = (licenseKey: string): string =>
  `coalesce((SELECT max(number) FROM license_history AS kept WHERE kept.license_key = ${licenseKey}), 0)`;

/**
 * The settings of the authority. The other settings belong to one process: the path of its state directory, its elapsed
 * clock, its `admin.token`.
 */
const settings = [
  'role',
  'instance',
  'log_key',
  'high_water',
  'high_water_unconfirmed',
  // Agents know the store by it. PostgreSQL adds its own history to it, so agents follow their keys anew.
  'sync_epoch',
  'keyed_answers_pruned',
];

/** The tables of an authority, each after the tables that it refers to. */
export const movedTables: readonly MovedTable[] = [
  table('account', 'account_id name key_digest created_at'),
  table(
    'product',
    'product_key account_id name recurring secret_digest created_at archived_at seats lease_hold_ms lease_term_ms lease_refresh_ms lease_email license_for entitlements expiry_grace_ms graced_to',
    { booleans: 'recurring lease_email' },
  ),
  table('collection', 'collection_id account_id name'),
  table('collection_member', 'collection_id position product_key', { keyLength: 2 }),
  table(
    'license',
    'license_key product_key buyer_email uses enabled created_at expires_at grace_until uses_limit terms replaced_by revision disabled_revision changes',
    {
      booleans: 'enabled',
      computed: { changes: lastChange('license.license_key') },
    },
  ),
  table(
    'activation',
    'activation_id license_key product_key device device_name state seq digest answer rev expires_at seat_until uses_recorded uses_returned created_at renewed_at moved_at challenged_at copied_at',
  ),
  table('purchase', 'purchase_id license_key created_at refunded_at'),
  table(
    'coupon',
    'id account_id code folded_code scope product_key collection_id percent_off amount_off start_at end_at minimum_purchase_amount usage_limit notes',
  ),
  table('token', 'token_id digest scopes product_key account_id label created_at last_used_at expires_at', {
    where: `token_id <> '${adminTokenId}'`,
  }),
  table('old_credential', 'kind id digest until', { keyLength: 2 }),
  table('redemption', 'id account_id order_id coupon_id cart quote redeemed_at over_limit', {
    booleans: 'over_limit',
  }),
  table('redemption_count', 'account_id coupon_id count', { keyLength: 2 }),
  table(
    'license_history',
    'license_key number at change credential uses_before enabled_before uses_after enabled_after expires_before expires_after',
    {
      keyLength: 2,
      booleans: 'enabled_before enabled_after',
      where: `number > ${lastChange('license_history.license_key')} - ${maxHistoryEntries}`,
    },
  ),
  table('idempotency', 'credential key fingerprint value kept_until unchanged', {
    keyLength: 2,
    booleans: 'unchanged',
  }),
  table('setting', 'name value', { where: `name IN ('${settings.join("', '")}')` }),
  table('audit_event', 'id at actor action subject detail'),
  // The process that had a claim has ended.
  table(
    'webhook_endpoint',
    'endpoint_id url types secret old_secret old_secret_until state position failures failing_since next_at last_success_at last_error created_at',
  ),
  table('webhook_event', 'number event_id type subject at'),
  table(
    'webhook_delivery',
    'endpoint_id number event_id type delivered attempts status error duration_ms at',
    { keyLength: 2, booleans: 'delivered' },
  ),
  table('sync_agent', 'number agent_id reach account_id product_key followed created_at seen_at', {
    computed: { followed: '0' },
  }),
];

/**
 * SQL for the last number that SQLite has used, or 0. The next number follows it. SQLite reuses the numbers of removed
 * redemptions.
 */
export const lastNumbers: Readonly<Record<'coupon' | 'audit' | 'redemption' | 'syncAgent', string>> = {
  coupon: `SELECT coalesce(max(seq), 0) AS last FROM sqlite_sequence WHERE name = 'coupon'`,
  audit: `SELECT coalesce(max(seq), 0) AS last FROM sqlite_sequence WHERE name = 'audit_event'`,
  redemption: 'SELECT coalesce(max(id), 0) AS last FROM redemption',
  syncAgent: `SELECT coalesce(max(seq), 0) AS last FROM sqlite_sequence WHERE name = 'sync_agent'`,
};
