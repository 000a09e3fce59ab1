export type ProfileName = 'gumroad' | 'lemonsqueezy' | 'woocommerce';

/** What is known about the export of a store. Names of columns are as `normalizedName` writes them. */
interface Profile {
  readonly describe: string;
  readonly sources: readonly {
    readonly ours: string;
    /** The first of these that the file has. */
    readonly columns: readonly string[];
    /** The words of a state, as in `--map`; `limit`: a number of which 0 is none. */
    readonly values?: string;
    /** Columns; if one of them is 1, this source is not read. */
    readonly unless?: readonly string[];
  }[];
  /** A column that is 1 in rows that renew a key of another row. */
  readonly renewal?: string;
  /** Columns that look like states, but do not decide whether a key is valid. */
  readonly dismissed: readonly string[];
}

export const profiles: Readonly<Record<ProfileName, Profile>> = {
  gumroad: {
    describe: 'the sales that Gumroad exports',
    sources: [
      { ours: 'purchase_id', columns: ['purchase_id'] },
      { ours: 'license_key', columns: ['license_key'] },
      { ours: 'buyer_email', columns: ['purchase_email'] },
      { ours: 'product_key', columns: ['product_id'] },
      { ours: 'date', columns: ['purchase_time_utc_timezone', 'purchase_date'] },
      { ours: 'uses', columns: ['license_key_activation_count'] },
      { ours: 'enabled', columns: ['license_key_enabled'], values: '1|0' },
      { ours: 'enabled', columns: ['access_revoked'], values: '0,-|1' },
      {
        ours: 'enabled',
        columns: ['disputed'],
        values: '0,-|1',
        unless: ['dispute_won', 'recurring_charge'],
      },
      // The day on which a membership has ended or will end.
      { ours: 'expires_at', columns: ['subscription_end_date'] },
      // `Refunded?` is also 1 after a part was refunded. The refund of a renewal does not end the key.
      {
        ours: 'refunded',
        columns: ['fully_refunded', 'refunded'],
        values: '1|0,-',
        unless: ['recurring_charge'],
      },
    ],
    renewal: 'recurring_charge',
    dismissed: [
      'state',
      'refunded',
      'partial_refund',
      'dispute_won',
      'cancellation_date',
      'buyer_refunded_total',
    ],
  },
  lemonsqueezy: {
    describe: 'license keys of Lemon Squeezy, with the names of its API',
    sources: [
      { ours: 'license_key', columns: ['key', 'license_key'] },
      { ours: 'buyer_email', columns: ['user_email', 'customer_email'] },
      { ours: 'product_key', columns: ['product_id'] },
      { ours: 'date', columns: ['created_at'] },
      // A key that was never activated is inactive, and valid.
      {
        ours: 'enabled',
        columns: ['status', 'status_formatted'],
        values: 'active,inactive|expired,disabled',
      },
      { ours: 'enabled', columns: ['disabled'], values: '0,false,-|1,true' },
      { ours: 'expires_at', columns: ['expires_at'] },
      // So many installations at the same time, each of which can be deactivated.
      { ours: 'seats', columns: ['activation_limit'], values: 'limit' },
      { ours: 'refunded', columns: ['refunded'], values: '1,true|0,false,-' },
      { ours: 'refunded_at', columns: ['refunded_at'] },
    ],
    dismissed: ['status_formatted'],
  },
  woocommerce: {
    describe: 'License Manager for WooCommerce',
    sources: [
      { ours: 'license_key', columns: ['license_key'] },
      {
        ours: 'buyer_email',
        columns: ['user_email', 'billing_email', 'customer_email', 'buyer_email', 'email'],
      },
      { ours: 'product_key', columns: ['product_id'] },
      { ours: 'date', columns: ['created_at'] },
      { ours: 'uses', columns: ['times_activated'] },
      { ours: 'enabled', columns: ['status'], values: 'sold,delivered,active,1,2,3|inactive,disabled,4,5' },
      { ours: 'expires_at', columns: ['expires_at'] },
      // A deactivation takes one off `times_activated`, so this limits what is activated at the same time.
      { ours: 'seats', columns: ['times_activated_max'], values: 'limit' },
    ],
    dismissed: ['valid_for'],
  },
};
