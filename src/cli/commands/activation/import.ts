import { defineImport, scopeProduct } from '../../csv/import.ts';

export const command = defineImport({
  describe: 'Import activations from a CSV file of another issuer',
  noun: 'activation',
  required: [
    'activation_id',
    'license_key',
    'device',
    'state',
    'seq',
    'rev',
    'expires_at',
    'seat_until',
    'uses_recorded',
    'uses_returned',
    'created_at',
    'renewed_at',
  ],
  optional: ['product_key', 'device_name', 'moved_at', 'challenged_at', 'copied_at', 'digest'],
  scope: scopeProduct,
});
