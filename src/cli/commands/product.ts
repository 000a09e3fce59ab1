import { readFileSync } from 'node:fs';
import { formatReason } from '../../config/fault.ts';
import { ask } from '../client/ask.ts';
import { type CommandEntry, defineCommand, entry, operand, textOption } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { formatFields } from '../text/layout.ts';
import { formatPage, takePage } from '../text/page.ts';
import { type Product, product, productList } from '../client/wire.ts';

const path = '/admin/v1/products';

const add = defineCommand(
  (yargs) =>
    yargs
      .positional('name', operand('Name'))
      .options({
        recurring: { type: 'boolean', describe: 'Has a recurring price' },
        account: textOption('Account id'),
        key: textOption('Product key of an existing store'),
        'secret-file': textOption('File with its secret, taken over from an existing store'),
      })
      .example('$0 product add "My editor"', 'makes a key and a secret'),
  async (args, output) => {
    let secret: string | undefined;
    try {
      // On the command line a secret would be seen by every user of the machine.
      secret = args.secretFile === undefined ? undefined : readFileSync(args.secretFile, 'utf8').trim();
    } catch (error) {
      output.complain([`latchkey: cannot read ${args.secretFile}: ${formatReason(error)}`]);
      return exitCode.failed;
    }
    const { name, recurring, account, key } = args;
    const json = { name, recurring, account_id: account, product_key: key, secret };
    return ask(args, output, { method: 'POST', path, json }, { schema: product, show: formatProduct });
  },
);

const roll = defineCommand(
  (yargs) => yargs.positional('product', operand('Product key')),
  (args, output) =>
    ask(
      args,
      output,
      { method: 'POST', path: `${path}/${encodeURIComponent(args.product)}/roll-secret` },
      { schema: product, show: formatProduct },
    ),
);

const list = defineCommand(takePage, (args, output) =>
  ask(
    args,
    output,
    { path, query: { limit: args.limit, offset: args.offset } },
    {
      schema: productList,
      show: ({ products }, answer) =>
        formatPage(
          products.map(({ product_key, name, recurring }) => ({
            product: product_key,
            name,
            price: recurring ? 'recurring' : 'once',
          })),
          answer,
          args.offset,
        ),
    },
  ),
);

/** `product …`. */
export const productCommands: readonly CommandEntry[] = [
  entry('add <name>', 'Add a product', add),
  entry('list', 'List products', list),
  entry('roll <product>', 'Make a new secret: the old one stops at once', roll),
];

function formatProduct({ product_key, name, recurring, secret }: Product): string {
  const fields = { product: product_key, name, price: recurring ? 'recurring' : 'once', secret };
  return `${formatFields(fields)}\n\nThe secret is shown only this once.`;
}
