import { defineRequest } from '../client/ask.ts';
import { defineFilteredList } from '../client/list.ts';
import { type Command, operand, textOption } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { license, licenseView } from './license-view.ts';
import { purchasesPath, purchaseView } from './purchase.ts';

/** `verify`: 0 when the key is enabled, 1 when it is disabled or unknown. */
export const verifyCommand: Command = defineRequest(
  (yargs) =>
    yargs
      .positional('key', operand('License key'))
      .example('$0 verify ABCDE-FGHJK-LMNPQ-RSTUV', 'exits 0 when valid, 1 when disabled or unknown')
      .example('$0 verify --json -- "$KEY"', 'for scripts: after -- nothing is an option'),
  (args) => ({ path: '/api/v2/license/verify', query: { license_key: args.key } }),
  { ...licenseView, judge: ({ enabled }) => (enabled ? exitCode.done : exitCode.failed) },
);

/** `use`. */
export const useCommand: Command = changeCommand('usage');

/** `unuse`. */
export const unuseCommand: Command = changeCommand('decrease');

/** `enable`. */
export const enableCommand: Command = changeCommand('enable');

/** `disable`. */
export const disableCommand: Command = changeCommand('disable');

/** Each change of a license is one endpoint of the specification (4.4). */
function changeCommand(endpoint: 'usage' | 'decrease' | 'enable' | 'disable'): Command {
  return defineRequest(
    (yargs) => yargs.positional('key', operand('License key')),
    (args) => ({
      method: 'PUT',
      path: `/api/v2/license/${endpoint}`,
      form: { license_key: args.key },
    }),
    licenseView,
  );
}

/** `license issue`. */
export const issueLicense: Command = defineRequest(
  (yargs) =>
    yargs
      .options({
        product: { ...textOption('Product key'), demandOption: true },
        email: { ...textOption('E-mail address of the buyer'), demandOption: true },
        key: textOption('License key; one is made when it is not given'),
        date: textOption('When it was sold, as in 2024-02-22T11:23:05Z; now when it is not given'),
        uses: { type: 'number', requiresArg: true, describe: 'Uses so far' },
        enabled: { choices: ['true', 'false'], describe: 'Whether the key is valid' },
      })
      .example('$0 license issue --product RGsF --email buyer@example.com', 'records a purchase'),
  ({ product, email, key, date, uses, enabled }) => ({
    method: 'POST',
    path: purchasesPath,
    json: { product_key: product, buyer_email: email, license_key: key, date, uses, enabled },
  }),
  purchaseView,
);

/** `license list`. */
export const listLicenses: Command = defineFilteredList(
  {
    path: '/admin/v1/licenses',
    member: 'licenses',
    item: license,
    row: ({ license_key, enabled, uses, product_link, buyer_email, date }) => ({
      'license key': license_key,
      state: enabled ? 'valid' : 'disabled',
      uses,
      product: product_link,
      buyer: buyer_email,
      created: date,
    }),
  },
  {
    options: (yargs) =>
      yargs.options({
        product: textOption('Only of this product'),
        email: textOption('Only of this buyer'),
        enabled: { choices: ['true', 'false'], describe: 'Only the valid, only the disabled' },
      }),
    query: ({ product, enabled, email }) => ({ product_key: product, enabled, buyer_email: email }),
  },
);
