import { defineImport, scopeProduct } from '../../csv/import.ts';

export const command = defineImport({
  describe: 'Import licenses from a CSV file of another store',
  noun: 'license',
  required: ['license_key', 'buyer_email'],
  optional: ['product_key', 'uses', 'enabled', 'date', 'refunded', 'refunded_at'],
  scope: scopeProduct,
});
