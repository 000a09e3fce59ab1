import { z } from 'zod';
import { type AnswerView, ask, defineRequest, inquire } from '../../client/ask.ts';
import { defineFilteredList } from '../../client/list.ts';
import {
  type Command,
  defineCommand,
  type GlobalOptions,
  operand,
  textOption,
  UsageError,
} from '../../command.ts';
import { type Cell, formatFields, instant, whole } from '../../format.ts';
import { keepOldOption, readKeepOld } from '../../keep-old.ts';
import type { Output } from '../../output.ts';
import { withSecretOf } from '../../secret-option.ts';

const path = '/admin/v1/products';

const product = z.object({
  product_key: z.string(),
  account_id: z.string(),
  name: z.string(),
  recurring: z.boolean(),
  archived: z.boolean(),
  // Only when it was just made.
  secret: z.string().optional(),
  old_secret_until: z.string().optional(),
});

type Product = z.infer<typeof product>;

const view: AnswerView<Product> = { schema: product, show: (shown) => formatFields(productFields(shown)) };

const withNewSecret: AnswerView<Product> = {
  schema: product,
  show: (made) => [
    formatFields({
      ...productFields(made),
      secret: made.secret,
      'old one until': instant(made.old_secret_until),
    }),
    'The secret is shown only this once.',
  ],
};

/** `product add`. */
export const addProduct: Command = defineCommand(
  (syntax) =>
    syntax
      .positional('name', operand('Name'))
      .options({
        recurring: { type: 'boolean', describe: 'Has a recurring price' },
        account: textOption('Account id', 'account'),
        key: textOption('Product key of an existing store'),
        'secret-file': textOption('File with its secret from an existing store', 'file'),
      })
      .example('latchkey product add "My editor"', 'makes a key and a secret')
      .example(
        'latchkey product add "My editor" --key RGsF --secret-file rgsf.secret',
        'keeps what callers know',
      ),
  (args, output) =>
    withSecretOf(args.secretFile, output, async (secret) => {
      const { name, recurring, account, key } = args;
      const json = { name, recurring, account_id: account, product_key: key, secret };
      return await ask(args, output, { method: 'POST', path, json }, withNewSecret);
    }),
);

/** `product roll`. */
export const rollSecret: Command = defineRequest(
  (syntax) =>
    syntax
      .positional('product', operand('Product key', 'product'))
      .option('keep-old', keepOldOption)
      .example('latchkey product roll RGsF --keep-old 24h', 'callers have a day to change to the new one'),
  (args) => ({
    method: 'POST',
    path: `${pathOf(args.product)}/roll-secret`,
    json: { keep_old_s: readKeepOld(args.keepOld) },
  }),
  withNewSecret,
);

/** `product list`. */
export const listProducts: Command = defineFilteredList(
  { path, member: 'products', item: product, row: productFields },
  {
    options: (syntax) =>
      syntax
        .options({
          account: textOption('Only of this account', 'account'),
          archived: { choices: ['true', 'false'], describe: 'Only archived ones, or only those on sale' },
        })
        .example('latchkey product list --archived false', 'those on sale'),
    query: ({ account, archived }) => ({ account_id: account, archived }),
  },
);

/** `product show`. */
export const showProduct: Command = defineRequest(
  (syntax) =>
    syntax
      .positional('product', operand('Product key', 'product'))
      .example('latchkey product show RGsF', 'its name, price and state'),
  (args) => ({ path: pathOf(args.product) }),
  view,
);

/** `product update`. */
export const updateProduct: Command = defineCommand(
  (syntax) =>
    syntax
      .positional('product', operand('Product key', 'product'))
      .options({
        name: textOption('New name'),
        recurring: { choices: ['true', 'false'] as const, describe: 'Whether it has a recurring price' },
      })
      .example('latchkey product update RGsF --name "My editor 2"', 'renames it; its keys stay valid'),
  async (args, output) => {
    const { name, recurring } = args;
    if (name === undefined && recurring === undefined) {
      throw new UsageError('say what to change: --name or --recurring');
    }
    return await change(args, output, {
      ...(name !== undefined && { name }),
      ...(recurring !== undefined && { recurring: recurring === 'true' }),
    });
  },
);

/** `product archive`: not sold any more, and its keys go on. */
export const archiveProduct: Command = defineCommand(
  (syntax) =>
    syntax
      .positional('product', operand('Product key', 'product'))
      .example('latchkey product archive RGsF', 'no more sales; its keys stay valid'),
  async (args, output) => await change(args, output, { archived: true }),
);

/** `product unarchive`. */
export const unarchiveProduct: Command = defineCommand(
  (syntax) =>
    syntax
      .positional('product', operand('Product key', 'product'))
      .example('latchkey product unarchive RGsF', 'it is on sale again'),
  async (args, output) => await change(args, output, { archived: false }),
);

/** Reads a product, and sends all of it with what is changed. */
async function change(
  options: GlobalOptions & { readonly product: string },
  output: Output,
  changes: Partial<Pick<Product, 'name' | 'recurring' | 'archived'>>,
): Promise<number> {
  const asked = await inquire(options, { path: pathOf(options.product) }, product);
  if (!asked.ok) return asked.complain(output);
  const { name, recurring, archived } = asked.data;
  const json = { name, recurring, archived, ...changes };
  return await ask(options, output, { method: 'PUT', path: pathOf(options.product), json }, view);
}

function pathOf(key: string): string {
  return `${path}/${encodeURIComponent(key)}`;
}

function productFields(shown: Product): Record<string, Cell> {
  return {
    product: whole(shown.product_key),
    name: shown.name,
    price: shown.recurring ? 'recurring' : 'once',
    state: shown.archived ? 'archived' : 'on sale',
    account: whole(shown.account_id),
  };
}
