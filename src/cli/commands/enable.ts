import { request } from '../client/request.ts';
import { defineCommand, type GlobalOptions } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { hintFor } from '../hint.ts';
import { licenseKeyPositional, readLicenseKey } from '../values.ts';
import { changeLicense, licensesPath, requestAndShowLicense } from './license/license.ts';
import { licenseList } from '../../wire/license.ts';

export const command = defineCommand({
  command: 'enable <key..>',
  describe: 'Enable a license key',
  builder: {
    key: licenseKeyPositional,
    refunded: { type: 'boolean', describe: 'Even if its purchase was refunded' },
  },
  examples: [['latchkey enable ABCDE-FGHJK-LMNPQ-RSTUV', 'the key is valid again']],
  handler: async (args, output) => {
    const key = readLicenseKey(args.key);
    const refundedAt = args.refunded ? null : await findRefund(args, key);
    if (refundedAt === null) return await requestAndShowLicense(args, output, changeLicense('enable', key));
    output.printError([
      `latchkey: this key was refunded, at ${refundedAt}`,
      `To enable it anyway: ${hintFor(args)('enable --refunded KEY')}`,
    ]);
    return exitCode.failed;
  },
});

/** When the purchase of a key was refunded; null if it was not, or this daemon or token does not know. */
async function findRefund(options: GlobalOptions, key: string): Promise<string | null> {
  const result = await request(options, { path: licensesPath, query: { license_key: key } }, licenseList);
  return result.ok ? (result.data.licenses[0]?.refunded_at ?? null) : null;
}
