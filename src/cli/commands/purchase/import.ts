import { defineImport, scopeProduct } from '../../csv/import.ts';

export const command = defineImport({
  describe: 'Import purchases, with their licenses, from a CSV file of another store',
  noun: 'purchase',
  required: ['license_key', 'buyer_email'],
  optional: ['purchase_id', 'product_key', 'uses', 'enabled', 'date', 'refunded', 'refunded_at'],
  scope: scopeProduct,
});
