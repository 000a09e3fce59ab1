import { z } from 'zod';
import { type AnswerView, ask, defineRequest } from '../client/ask.ts';
import { defineList } from '../client/list.ts';
import { type Command, defineCommand, operand, textOption } from '../command.ts';
import { formatFields } from '../format.ts';
import { keepOldOption, readKeepOld } from '../keep-old.ts';
import { withSecretOf } from '../secret-option.ts';

const path = '/admin/v1/products';

const product = z.object({
  product_key: z.string(),
  name: z.string(),
  recurring: z.boolean(),
  // Only when it was just made.
  secret: z.string().optional(),
  old_secret_until: z.string().optional(),
});

type Product = z.infer<typeof product>;

const withNewSecret: AnswerView<Product> = {
  schema: product,
  show: (made) =>
    `${formatFields({ ...listProduct(made), secret: made.secret, 'old one until': made.old_secret_until })}\n\nThe secret is shown only this once.`,
};

/** `product add`. */
export const addProduct: Command = defineCommand(
  (yargs) =>
    yargs
      .positional('name', operand('Name'))
      .options({
        recurring: { type: 'boolean', describe: 'Has a recurring price' },
        account: textOption('Account id'),
        key: textOption('Product key of an existing store'),
        'secret-file': textOption('File with its secret, taken over from an existing store'),
      })
      .example('$0 product add "My editor"', 'makes a key and a secret')
      .example('$0 product add "My editor" --key RGsF --secret-file rgsf.secret', 'keeps what callers know'),
  (args, output) =>
    withSecretOf(args.secretFile, output, async (secret) => {
      const { name, recurring, account, key } = args;
      const json = { name, recurring, account_id: account, product_key: key, secret };
      return await ask(args, output, { method: 'POST', path, json }, withNewSecret);
    }),
);

/** `product roll`. */
export const rollSecret: Command = defineRequest(
  (yargs) =>
    yargs
      .positional('product', operand('Product key'))
      .option('keep-old', keepOldOption)
      .example('$0 product roll RGsF --keep-old 24h', 'until all that send it have the new one'),
  (args) => ({
    method: 'POST',
    path: `${path}/${encodeURIComponent(args.product)}/roll-secret`,
    json: { keep_old_s: readKeepOld(args.keepOld) },
  }),
  withNewSecret,
);

/** `product list`. */
export const listProducts: Command = defineList({
  path,
  member: 'products',
  item: product,
  row: listProduct,
});

function listProduct({
  product_key,
  name,
  recurring,
}: Product): Record<'product' | 'name' | 'price', string> {
  return { product: product_key, name, price: recurring ? 'recurring' : 'once' };
}
