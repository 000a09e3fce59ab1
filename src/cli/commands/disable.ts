import { defineCommand } from '../command.ts';
import { licenseKeyPositional, readLicenseKey } from '../values.ts';
import { changeLicense, requestAndShowLicense } from './license/license.ts';

export const command = defineCommand({
  command: 'disable <key..>',
  describe: 'Disable a license key',
  builder: { key: licenseKeyPositional },
  examples: [['latchkey disable ABCDE-FGHJK-LMNPQ-RSTUV', 'the key is refused from now on']],
  handler: async (args, output) =>
    await requestAndShowLicense(args, output, changeLicense('disable', readLicenseKey(args.key))),
});
