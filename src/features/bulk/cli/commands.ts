import { defineExport } from './export.ts';
import { defineImport, scopeAccount, scopeProduct } from './import.ts';

export const license = {
  commands: [
    defineImport({
      describe: 'Import licenses from a CSV file of another store',
      noun: 'license',
      required: ['license_key', 'buyer_email'],
      optional: ['product_key', 'uses', 'enabled', 'date', 'refunded', 'refunded_at'],
      scope: scopeProduct,
    }),
    defineExport('license', 'Export all licenses to a new CSV file'),
  ],
};

export const purchase = {
  commands: [
    defineImport({
      describe: 'Import purchases, with their licenses, from a CSV file of another store',
      noun: 'purchase',
      required: ['license_key', 'buyer_email'],
      optional: ['purchase_id', 'product_key', 'uses', 'enabled', 'date', 'refunded', 'refunded_at'],
      scope: scopeProduct,
    }),
    defineExport('purchase', 'Export all purchases to a new CSV file'),
  ],
};

export const coupon = {
  commands: [
    defineImport({
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
    }),
    defineExport('coupon', 'Export the coupons of an account to a new CSV file'),
  ],
};
