import { defineCommand } from '../command.ts';
import { licenseKeyPositional, readLicenseKey } from '../values.ts';
import { changeLicense, requestAndShowLicense } from './license/license.ts';

export const command = defineCommand({
  command: 'use <key..>',
  describe: 'Record one use of a license key',
  builder: { key: licenseKeyPositional },
  examples: [['latchkey use ABCDE-FGHJK-LMNPQ-RSTUV', 'works while the store is unreachable, too']],
  handler: async (args, output) =>
    await requestAndShowLicense(args, output, changeLicense('usage', readLicenseKey(args.key))),
});
