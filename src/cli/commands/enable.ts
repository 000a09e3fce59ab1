import { dataOrNull } from '../client/request.ts';
import { CommandError, defineCommand, type GlobalOptions } from '../command.ts';
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
    throw new CommandError([
      `latchkey: this key was refunded, at ${refundedAt}`,
      `To enable it anyway: ${hintFor(args)('enable --refunded KEY')}`,
    ]);
  },
});

/** When the purchase of a key was refunded; null if it was not, or this daemon or token does not know. */
async function findRefund(options: GlobalOptions, key: string): Promise<string | null> {
  const call = { path: licensesPath, query: { license_key: key } };
  return (await dataOrNull(options, call, licenseList))?.licenses[0]?.refunded_at ?? null;
}
