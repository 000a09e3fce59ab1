import { licenseList } from '../../wire/license.ts';
import { dataOrNull } from '../client/request.ts';
import { CommandError, defineCommand, type GlobalOptions } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { hintFor } from '../hint.ts';
import { licenseKeyPositional, readLicenseKey } from '../values.ts';
import { changeLicense, licensesPath, requestAndShowLicense } from './license-view.ts';

export const verify = defineCommand({
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

export const use = defineCommand({
  command: 'use <key..>',
  describe: 'Record one use of a license key',
  builder: { key: licenseKeyPositional },
  examples: [['latchkey use ABCDE-FGHJK-LMNPQ-RSTUV', 'works while the store is unreachable, too']],
  handler: async (args, output) =>
    await requestAndShowLicense(args, output, changeLicense('usage', readLicenseKey(args.key))),
});

export const unuse = defineCommand({
  command: 'unuse <key..>',
  describe: 'Undo one use of a license key',
  builder: { key: licenseKeyPositional },
  examples: [['latchkey unuse ABCDE-FGHJK-LMNPQ-RSTUV', 'if a use was recorded by mistake']],
  handler: async (args, output) =>
    await requestAndShowLicense(args, output, changeLicense('decrease', readLicenseKey(args.key))),
});

export const enable = defineCommand({
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

export const disable = defineCommand({
  command: 'disable <key..>',
  describe: 'Disable a license key',
  builder: { key: licenseKeyPositional },
  examples: [['latchkey disable ABCDE-FGHJK-LMNPQ-RSTUV', 'the key is refused from now on']],
  handler: async (args, output) =>
    await requestAndShowLicense(args, output, changeLicense('disable', readLicenseKey(args.key))),
});

/** When the purchase of a key was refunded; null if it was not, or this daemon or token does not know. */
async function findRefund(options: GlobalOptions, key: string): Promise<string | null> {
  const call = { path: licensesPath, query: { license_key: key } };
  return (await dataOrNull(options, call, licenseList))?.licenses[0]?.refunded_at ?? null;
}
