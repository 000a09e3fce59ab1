import { defineCommand } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { licenseKeyPositional, readLicenseKey } from '../values.ts';
import { requestAndShowLicense } from './license/license.ts';

export const command = defineCommand({
  command: 'verify <key..>',
  describe: 'Check whether a license key is valid',
  builder: { key: licenseKeyPositional },
  examples: [
    ['latchkey verify ABCDE-FGHJK-LMNPQ-RSTUV', 'exits 0 when valid, 1 when disabled or unknown'],
    ['latchkey verify WTKP4 66NL5 HMKQW GFSCZ', 'as read from paper'],
    ['latchkey verify --json -- "$KEY"', 'for scripts: after -- nothing is an option'],
  ],
  handler: async (args, output) => {
    const call = { path: '/api/v2/license/verify', query: { license_key: readLicenseKey(args.key) } };
    return await requestAndShowLicense(args, output, call, ({ enabled }) =>
      enabled ? exitCode.done : exitCode.failed,
    );
  },
});
