import { defineRequest } from '../../client/request.ts';
import { licenseKeyPositional, readLicenseKey } from '../../values.ts';
import { activationsPath, heldLeaseView, issuerTimeoutMs } from './held-lease.ts';

export const command = defineRequest({
  command: 'deactivate <key..>',
  describe: 'Give the seat of this device back, so that another device can take it',
  builder: { key: licenseKeyPositional },
  examples: [['latchkey deactivate ABCDE-FGHJK-LMNPQ-RSTUV', 'before the machine is sold, for example']],
  epilogue:
    'If the issuer cannot be reached, it learns this as soon as it can. Until then the state is waiting.',
  request: (args) => ({
    method: 'DELETE',
    path: `${activationsPath}/${encodeURIComponent(readLicenseKey(args.key))}`,
    timeoutMs: issuerTimeoutMs,
  }),
  view: heldLeaseView,
});
