import { defineImport, scopeAccount } from '../../csv/import.ts';

export const command = defineImport({
  describe: 'Import coupons from a CSV file of another store',
  noun: 'coupon',
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
  scope: scopeAccount,
});
