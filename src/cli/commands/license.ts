import { ask } from '../client/ask.ts';
import { type CommandEntry, defineCommand, entry, textOption } from '../command.ts';
import { formatPage, takePage } from '../text/page.ts';
import { formatPurchase } from '../text/purchase.ts';
import { licenseList, purchase } from '../client/wire.ts';

const issue = defineCommand(
  (yargs) =>
    yargs
      .options({
        product: { ...textOption('Product key'), demandOption: true },
        email: { ...textOption('E-mail address of the buyer'), demandOption: true },
        key: textOption('License key; one is made when it is not given'),
      })
      .example('$0 license issue --product RGsF --email buyer@example.com', 'records a purchase'),
  (args, output) => {
    const json = { product_key: args.product, buyer_email: args.email, license_key: args.key };
    return ask(
      args,
      output,
      { method: 'POST', path: '/admin/v1/purchases', json },
      { schema: purchase, show: formatPurchase },
    );
  },
);

const list = defineCommand(
  (yargs) =>
    takePage(yargs).options({
      product: textOption('Only of this product'),
      email: textOption('Only of this buyer'),
      enabled: { choices: ['true', 'false'], describe: 'Only the valid, only the disabled' },
    }),
  (args, output) => {
    const { product, enabled, email, limit, offset } = args;
    const query = { product_key: product, enabled, buyer_email: email, limit, offset };
    return ask(
      args,
      output,
      { path: '/admin/v1/licenses', query },
      {
        schema: licenseList,
        show: ({ licenses }, answer) =>
          formatPage(
            licenses.map(({ license_key, enabled: valid, uses, product_link, buyer_email, date }) => ({
              'license key': license_key,
              state: valid ? 'valid' : 'disabled',
              uses,
              product: product_link,
              buyer: buyer_email,
              created: date,
            })),
            answer,
            offset,
          ),
      },
    );
  },
);

/** `license …`. */
export const licenseCommands: readonly CommandEntry[] = [
  entry('issue', 'Record a purchase and issue its license key', issue),
  entry('list', 'List licenses', list),
];
