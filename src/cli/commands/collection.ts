import { collectionObject, type CollectionObject } from '../../wire/catalogue.ts';
import { defineList, defineRequest, pathOf, request, requestAndShow, type View } from '../client/request.ts';
import { defineCommand, positional, positionalGroup, textOption, UsageError } from '../command.ts';
import { type Cell, formatFields, whole } from '../format.ts';

const collectionsPath = '/admin/v1/collections';

const collectionPositional = positional('Collection id', 'collection');

const collectionView: View<CollectionObject> = {
  schema: collectionObject,
  show: (collection) => formatFields(collectionFields(collection)),
};

export const commands = [
  defineList({
    command: 'list',
    describe: 'List collections',
    builder: { account: textOption('Only of this account', 'account') },
    examples: [['latchkey collection list', 'with the products of each']],
    list: { path: collectionsPath, member: 'collections', item: collectionObject, row: collectionFields },
    query: ({ account }) => ({ account_id: account }),
  }),
  defineRequest({
    command: 'show <collection>',
    describe: 'Show a collection',
    builder: { collection: collectionPositional },
    examples: [['latchkey collection show c1', 'its name and products']],
    request: ({ collection }) => ({ path: pathOf(collectionsPath, collection) }),
    view: collectionView,
  }),
  defineCommand({
    command: 'update <collection> [products..]',
    describe: 'Change the name or the products of a collection',
    builder: {
      collection: collectionPositional,
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
      const path = pathOf(collectionsPath, args.collection);
      if (products.length === 0 && name === undefined)
        throw new UsageError('Give something to change: products or --name');
      const current = await request(args, { path }, collectionObject);
      const json = {
        name: name ?? current.data.name,
        product_keys: products.length > 0 ? products : current.data.product_keys,
      };
      return await requestAndShow(args, output, { method: 'PUT', path, json }, collectionView);
    },
  }),
  defineRequest({
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
  }),
];

function collectionFields(collection: CollectionObject): Record<string, Cell> {
  return {
    collection: whole(collection.collection_id),
    name: collection.name,
    products: collection.product_keys.join(', '),
    account: whole(collection.account_id),
  };
}
