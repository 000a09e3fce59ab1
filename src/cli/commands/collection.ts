import { z } from 'zod';
import { defineRequest } from '../client/ask.ts';
import { type Command, operand, textOption } from '../command.ts';
import { formatFields } from '../format.ts';

const collection = z.object({
  collection_id: z.string(),
  name: z.string(),
  product_keys: z.array(z.string()),
});

/** `collection add`. */
export const addCollection: Command = defineRequest(
  (yargs) =>
    yargs
      .positional('name', operand('Name'))
      .positional('products', {
        type: 'string',
        array: true,
        demandOption: true,
        describe: 'Keys of the products in it',
      })
      .option('id', textOption('Collection id of an existing store'))
      .option('account', textOption('Account id')),
  ({ name, products, id, account }) => ({
    method: 'POST',
    path: '/admin/v1/collections',
    json: { name, product_keys: products, collection_id: id, account_id: account },
  }),
  {
    schema: collection,
    show: ({ collection_id, name, product_keys }) =>
      formatFields({ collection: collection_id, name, products: product_keys.join(', ') }),
  },
);
