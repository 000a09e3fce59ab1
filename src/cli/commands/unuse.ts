import { defineCommand } from '../command.ts';
import { licenseKeyPositional, readLicenseKey } from '../values.ts';
import { changeLicense, requestAndShowLicense } from './license/license.ts';

export const command = defineCommand({
  command: 'unuse <key..>',
  describe: 'Undo one use of a license key',
  builder: { key: licenseKeyPositional },
  examples: [['latchkey unuse ABCDE-FGHJK-LMNPQ-RSTUV', 'if a use was recorded by mistake']],
  handler: async (args, output) =>
    await requestAndShowLicense(args, output, changeLicense('decrease', readLicenseKey(args.key))),
});
