import { defineRequest } from '../../client/request.ts';
import { positional, textOption } from '../../command.ts';
import { collectionsPath, collectionView } from './collection.ts';

export const command = defineRequest({
  command: 'add <name> <products..>',
  describe: 'Add a collection of products',
  builder: {
    name: positional('Name'),
    products: { ...positional('Keys of the products in it', 'product'), array: true },
    id: textOption('Collection id of an existing store'),
    account: textOption('Account id', 'account'),
  },
  examples: [['latchkey collection add "My bundle" RGsF GhTy', 'of two products']],
  request: ({ name, products, id, account }) => ({
    method: 'POST',
    path: collectionsPath,
    json: { name, product_keys: products, collection_id: id, account_id: account },
  }),
  view: collectionView,
});
