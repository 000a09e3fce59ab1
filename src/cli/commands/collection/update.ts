import { request, requestAndShow } from '../../client/request.ts';
import { defineCommand, positional, positionalGroup, textOption, UsageError } from '../../command.ts';
import { collectionPath, collectionView } from './collection.ts';
import { collectionObject } from '../../../wire/collection.ts';

export const command = defineCommand({
  command: 'update <collection> [products..]',
  describe: 'Change the name or the products of a collection',
  builder: {
    collection: positional('Collection id', 'collection'),
    products: {
      ...textOption('Keys of all products that it is to have', 'product'),
      group: positionalGroup,
      array: true,
      default: [] as string[],
    },
    name: textOption('New name'),
  },
  examples: [['latchkey collection update c1 RGsF GhTy', 'it has these two products from now on']],
  handler: async (args, output) => {
    const { products, name } = args;
    const path = collectionPath(args.collection);
    if (products.length === 0 && name === undefined)
      throw new UsageError('Give something to change: products or --name');
    const current = await request(args, { path }, collectionObject);
    const json = {
      name: name ?? current.data.name,
      product_keys: products.length > 0 ? products : current.data.product_keys,
    };
    return await requestAndShow(args, output, { method: 'PUT', path, json }, collectionView);
  },
});
