import type { Values } from '../../client/call.ts';
import { saveAnswer } from '../../client/save.ts';
import { type Command, defineCommand, type GlobalOptions, operand, textOption } from '../../command.ts';
import type { Output } from '../../output.ts';

const newFile = operand('New CSV file; an existing file is never overwritten', 'file');
const ofProduct = { product: textOption('Only of this product', 'product') };

/** `license export`. */
export const exportLicenses: Command = defineCommand(
  (syntax) =>
    syntax
      .positional('file', newFile)
      .options(ofProduct)
      .example(
        'latchkey license export licenses.csv',
        'import it with: latchkey license import licenses.csv',
      ),
  (args, output) => save('licenses', { product_key: args.product }, args, output),
);

/** `purchase export`. */
export const exportPurchases: Command = defineCommand(
  (syntax) =>
    syntax
      .positional('file', newFile)
      .options(ofProduct)
      .example(
        'latchkey purchase export purchases.csv',
        'import it with: latchkey purchase import purchases.csv',
      ),
  (args, output) => save('purchases', { product_key: args.product }, args, output),
);

/** `coupon export`. */
export const exportCoupons: Command = defineCommand(
  (syntax) =>
    syntax
      .positional('file', newFile)
      .options({
        account: textOption('Account whose coupons they are; default: the account named default', 'account'),
      })
      .example('latchkey coupon export coupons.csv', 'import it with: latchkey coupon import coupons.csv'),
  (args, output) => save('coupons', { account_id: args.account }, args, output),
);

function save(
  noun: string,
  query: Values,
  args: GlobalOptions & { readonly file: string },
  output: Output,
): Promise<number> {
  return saveAnswer(args.file, { path: `/admin/v1/${noun}/export`, query }, args, output);
}
