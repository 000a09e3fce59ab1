import type { Columns } from './columns.ts';

const sale = {
  required: ['license_key', 'buyer_email'],
  optional: [
    'product_key',
    'uses',
    'enabled',
    'date',
    'refunded',
    'refunded_at',
    'replaced_by',
    'expires_at',
    'uses_limit',
    'entitlements',
    'metadata',
    'seats',
    'lease_hold_s',
    'lease_term_s',
    'lease_refresh_s',
  ],
} as const satisfies Columns;

/** The columns that the rows of an import must and may have. */
export const importable = {
  license: sale,
  purchase: { required: sale.required, optional: ['purchase_id', ...sale.optional] },
  coupon: {
    required: ['code', 'coupon_type'],
    optional: [
      'id',
      'percent_off',
      'amount_off',
      'start_date',
      'end_date',
      'product_key',
      'collection_id',
      'minimum_purchase_amount',
      'usage_limit',
      'notes',
    ],
  },
} as const satisfies Readonly<Record<string, Columns>>;

export type ImportedNoun = keyof typeof importable;
