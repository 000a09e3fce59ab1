import { defineList } from '../../client/request.ts';
import { textOption } from '../../command.ts';
import { productFields, productsPath } from './product.ts';
import { productObject } from '../../../wire/product.ts';

export const command = defineList({
  command: 'list',
  describe: 'List products',
  builder: {
    account: textOption('Only of this account', 'account'),
    archived: { choices: ['true', 'false'], describe: 'Only archived products, or only those on sale' },
  },
  examples: [['latchkey product list --archived false', 'the products on sale']],
  list: { path: productsPath, member: 'products', item: productObject, row: productFields },
  query: ({ account, archived }) => ({ account_id: account, archived }),
});
