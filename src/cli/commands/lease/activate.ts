import { defineRequest } from '../../client/request.ts';
import { licenseKeyPositional, readLicenseKey } from '../../values.ts';
import {
  activationsPath,
  heldLeaseView,
  issuerTimeoutMs,
  productOption,
  replacesOption,
} from './held-lease.ts';

export const command = defineRequest({
  command: 'activate <key..>',
  describe: 'Take a seat of a license key for this device (holder of leases)',
  builder: { key: licenseKeyPositional, product: productOption, replaces: replacesOption },
  examples: [
    ['latchkey activate ABCDE-FGHJK-LMNPQ-RSTUV', 'on the machine that runs your software'],
    [
      'latchkey activate ABCDE-FGHJK-LMNPQ-RSTUV --replaces 01997a3e-1111-7222-8333-444455556666',
      'takes over the seat of a lost device',
    ],
  ],
  request: (args) => ({
    method: 'POST',
    path: activationsPath,
    json: { license_key: readLicenseKey(args.key), product_key: args.product, replaces: args.replaces },
    timeoutMs: issuerTimeoutMs,
  }),
  view: heldLeaseView,
});
