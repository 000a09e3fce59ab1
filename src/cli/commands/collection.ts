import { ask } from '../client/ask.ts';
import { type CommandEntry, defineCommand, entry, operand, textOption } from '../command.ts';
import { formatFields } from '../text/layout.ts';
import { type Collection, collection } from '../client/wire.ts';

const add = defineCommand(
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
  (args, output) => {
    const { name, products, id, account } = args;
    const json = { name, product_keys: products, collection_id: id, account_id: account };
    return ask(
      args,
      output,
      { method: 'POST', path: '/admin/v1/collections', json },
      { schema: collection, show: formatCollection },
    );
  },
);

/** `collection …`. */
export const collectionCommands: readonly CommandEntry[] = [
  entry('add <name> <products..>', 'Add a collection of products', add),
];

function formatCollection({ collection_id, name, product_keys }: Collection): string {
  return formatFields({ collection: collection_id, name, products: product_keys.join(', ') });
}
