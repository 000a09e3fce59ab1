import { saveAnswer } from '../client/save.ts';
import { type Command, defineCommand, operand, textOption } from '../command.ts';

const newFile = operand('New CSV file; a file that is there is never overwritten');

/** `license export`. */
export const exportLicenses: Command = defineCommand(
  (yargs) =>
    yargs
      .positional('file', newFile)
      .options({ product: textOption('Only of this product') })
      .example('$0 license export licenses.csv', 'to be put in by: latchkey license import licenses.csv'),
  ({ product, ...args }, output) =>
    saveAnswer(
      args.file,
      { path: '/admin/v1/licenses/export', query: { product_key: product } },
      args,
      output,
    ),
);

/** `purchase export`. */
export const exportPurchases: Command = defineCommand(
  (yargs) => yargs.positional('file', newFile).options({ product: textOption('Only of this product') }),
  ({ product, ...args }, output) =>
    saveAnswer(
      args.file,
      { path: '/admin/v1/purchases/export', query: { product_key: product } },
      args,
      output,
    ),
);

/** `coupon export`. */
export const exportCoupons: Command = defineCommand(
  (yargs) => yargs.positional('file', newFile).options({ account: textOption('Account whose they are') }),
  ({ account, ...args }, output) =>
    saveAnswer(args.file, { path: '/admin/v1/coupons/export', query: { account_id: account } }, args, output),
);
