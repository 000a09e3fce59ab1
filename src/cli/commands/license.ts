import { type AnswerView, defineRequest, inquire, toldAt } from '../client/ask.ts';
import type { Call } from '../client/call.ts';
import { defineFilteredList } from '../client/list.ts';
import { type Command, defineCommand, type GlobalOptions, textOption } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { instant, whole } from '../format.ts';
import { hintFor } from '../hint.ts';
import { readInstant } from '../instant.ts';
import { licenseKeyOperand, readLicenseKey } from '../license-key-operand.ts';
import type { Output } from '../output.ts';
import {
  countPending,
  type License,
  licensesPath,
  licenseView,
  soldLicense,
  soldLicenses,
  type SoldLicense,
} from './license-view.ts';
import { purchasesPath, purchaseView } from './seller/purchase.ts';
import { sayUnconfirmed } from './status/unconfirmed.ts';

/** `verify`: 0 when the key is enabled, 1 when it is disabled or unknown. */
export const verifyCommand: Command = defineCommand(
  (syntax) =>
    syntax
      .positional('key', licenseKeyOperand)
      .example('latchkey verify ABCDE-FGHJK-LMNPQ-RSTUV', 'exits 0 when valid, 1 when disabled or unknown')

      .example('latchkey verify WTKP4 66NL5 HMKQW GFSCZ', 'as read from paper')
      .example('latchkey verify --json -- "$KEY"', 'for scripts: after -- nothing is an option'),
  async (args, output) => {
    const request = { path: '/api/v2/license/verify', query: { license_key: readLicenseKey(args.key) } };
    const judge = ({ enabled }: License): number => (enabled ? exitCode.done : exitCode.failed);
    return await askOfLicense(args, output, request, { ...licenseView, judge });
  },
);

/** Asks about a license, and says in words what of it the store has not confirmed. */
async function askOfLicense(
  options: GlobalOptions,
  output: Output,
  request: Call,
  view: AnswerView<License> = licenseView,
): Promise<number> {
  const asked = await inquire(options, request, view.schema);
  if (!asked.ok) return asked.complain(output);
  const { data, raw, answer } = asked;
  if (options.json) output.printJson(raw);
  else {
    const fields = view.show(data, answer, hintFor(options));
    const words = countPending(answer) > 0 ? await sayUnconfirmed(options, data.license_key) : [];
    await output.show([fields, ...(words.length > 0 ? [words.join('\n')] : [])].flat(), toldAt(answer));
  }
  return view.judge?.(data, answer) ?? exitCode.done;
}

/** `use`. */
export const useCommand: Command = changeCommand('usage', 'one more, even while the store is unreachable');

/** `unuse`. */
export const unuseCommand: Command = changeCommand('decrease', 'a use that was recorded by mistake');

/** `enable`: of a refunded key only when that is said. */
export const enableCommand: Command = defineCommand(
  (syntax) =>
    syntax
      .positional('key', licenseKeyOperand)
      .option('refunded', { type: 'boolean', describe: 'Even if its purchase was refunded' })
      .example('latchkey enable ABCDE-FGHJK-LMNPQ-RSTUV', 'it is valid again'),
  async (args, output) => {
    const key = readLicenseKey(args.key);
    const refundedAt = args.refunded ? null : await refundOf(args, key);
    if (refundedAt === null) return await askOfLicense(args, output, changeOf('enable', key));
    output.complain([
      `latchkey: this key was refunded, at ${refundedAt}`,
      `To enable it all the same: ${hintFor(args)('enable --refunded KEY')}`,
    ]);
    return exitCode.failed;
  },
);

/** When the purchase of a key was refunded; null: it was not, or this daemon or the token cannot tell. */
async function refundOf(options: GlobalOptions, key: string): Promise<string | null> {
  const asked = await inquire(options, { path: licensesPath, query: { license_key: key } }, soldLicenses);
  return asked.ok ? (asked.data.licenses[0]?.refunded_at ?? null) : null;
}

/** `disable`. */
export const disableCommand: Command = changeCommand('disable', 'it is refused from now on');

/** Each change of a license is one endpoint of the specification (4.4). */
function changeCommand(endpoint: 'usage' | 'decrease' | 'disable', says: string): Command {
  const name = { usage: 'use', decrease: 'unuse', disable: 'disable' }[endpoint];
  return defineCommand(
    (syntax) =>
      syntax.positional('key', licenseKeyOperand).example(`latchkey ${name} ABCDE-FGHJK-LMNPQ-RSTUV`, says),
    (args, output) => askOfLicense(args, output, changeOf(endpoint, readLicenseKey(args.key))),
  );
}

function changeOf(endpoint: string, key: string): Call {
  return { method: 'PUT', path: `/api/v2/license/${endpoint}`, form: { license_key: key } };
}

/** `license issue`. */
export const issueLicense: Command = defineRequest(
  (syntax) =>
    syntax
      .options({
        product: { ...textOption('Product key', 'product'), required: true },
        email: { ...textOption('E-mail address of the buyer'), required: true },
        key: textOption('License key; default: a new one'),
        date: textOption(
          'When it was sold: a datetime, a date (its start, UTC), or how long ago; default: now',
        ),
        uses: { type: 'number', describe: 'Uses so far' },
        enabled: { choices: ['true', 'false'], describe: 'Whether the key is valid' },
      })
      .example('latchkey license issue --product RGsF --email buyer@example.com', 'records a purchase'),
  ({ product, email, key, date, uses, enabled }) => ({
    method: 'POST',
    path: purchasesPath,
    json: {
      product_key: product,
      buyer_email: email,
      license_key: key,
      date: readInstant('date', date, 'before'),
      uses,
      enabled,
    },
  }),
  purchaseView,
);

/** `license list`. */
export const listLicenses: Command = defineFilteredList(
  {
    path: licensesPath,
    member: 'licenses',
    item: soldLicense,
    row: (listed) => ({
      'license key': whole(listed.license_key),
      state: stateOf(listed),
      uses: listed.uses,
      product: listed.product_link,
      buyer: listed.buyer_email,
      created: instant(listed.date),
    }),
  },
  {
    options: (syntax) =>
      syntax
        .options({
          product: textOption('Only of this product', 'product'),
          account: textOption('Only of this account', 'account'),
          email: textOption('Only of this buyer, in any letter case'),
          enabled: { choices: ['true', 'false'], describe: 'Only valid keys, or only disabled ones' },
        })
        .example('latchkey license list --product RGsF --enabled false', 'the disabled keys of a product'),
    query: ({ product, account, enabled, email }) => ({
      product_key: product,
      account_id: account,
      enabled,
      buyer_email: email,
    }),
  },
);

function stateOf({ enabled, refunded_at }: SoldLicense): string {
  if (enabled) return refunded_at === null ? 'valid' : 'valid, refunded';
  return refunded_at === null ? 'disabled' : 'refunded';
}
