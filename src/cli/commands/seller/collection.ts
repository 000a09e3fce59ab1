import { z } from 'zod';
import { type AnswerView, ask, defineRequest, inquire } from '../../client/ask.ts';
import { defineFilteredList } from '../../client/list.ts';
import { type Command, defineCommand, operand, textOption, UsageError } from '../../command.ts';
import { type Cell, formatFields, whole } from '../../format.ts';

const path = '/admin/v1/collections';

const collection = z.object({
  collection_id: z.string(),
  account_id: z.string(),
  name: z.string(),
  product_keys: z.array(z.string()),
});

type Collection = z.infer<typeof collection>;

const view: AnswerView<Collection> = {
  schema: collection,
  show: (shown) => formatFields(collectionFields(shown)),
};

/** `collection add`. */
export const addCollection: Command = defineRequest(
  (syntax) =>
    syntax
      .positional('name', operand('Name'))
      .positional('products', {
        array: true,
        required: true,
        describe: 'Keys of the products in it',
        names: 'product',
      })
      .option('id', textOption('Collection id of an existing store'))
      .option('account', textOption('Account id', 'account'))
      .example('latchkey collection add "My bundle" RGsF GhTy', 'of two products'),
  ({ name, products, id, account }) => ({
    method: 'POST',
    path,
    json: { name, product_keys: products, collection_id: id, account_id: account },
  }),
  view,
);

/** `collection list`. */
export const listCollections: Command = defineFilteredList(
  { path, member: 'collections', item: collection, row: collectionFields },
  {
    options: (syntax) =>
      syntax
        .option('account', textOption('Only of this account', 'account'))
        .example('latchkey collection list', 'with the products of each'),
    query: ({ account }) => ({ account_id: account }),
  },
);

/** `collection show`. */
export const showCollection: Command = defineRequest(
  (syntax) =>
    syntax
      .positional('collection', operand('Collection id', 'collection'))
      .example('latchkey collection show c1', 'its name and products'),
  (args) => ({ path: pathOf(args.collection) }),
  view,
);

/** `collection update`: reads it first, and changes what is given. */
export const updateCollection: Command = defineCommand(
  (syntax) =>
    syntax
      .positional('collection', operand('Collection id', 'collection'))
      .positional('products', {
        array: true,
        default: [] as string[],
        describe: 'Keys of all products that it is to have',
        names: 'product',
      })
      .option('name', textOption('New name'))
      .example('latchkey collection update c1 RGsF GhTy', 'it has these two products from now on'),
  async (args, output) => {
    const { collection: id, products, name } = args;
    if (products.length === 0 && name === undefined)
      throw new UsageError('say what to change: products or --name');
    const asked = await inquire(args, { path: pathOf(id) }, collection);
    if (!asked.ok) return asked.complain(output);
    const { data: was } = asked;
    const json = { name: name ?? was.name, product_keys: products.length > 0 ? products : was.product_keys };
    return await ask(args, output, { method: 'PUT', path: pathOf(id), json }, view);
  },
);

function pathOf(id: string): string {
  return `${path}/${encodeURIComponent(id)}`;
}

function collectionFields(shown: Collection): Record<string, Cell> {
  return {
    collection: whole(shown.collection_id),
    name: shown.name,
    products: shown.product_keys.join(', '),
    account: whole(shown.account_id),
  };
}
