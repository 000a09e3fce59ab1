import { defineList } from '../../client/request.ts';
import { textOption } from '../../command.ts';
import { collectionFields, collectionsPath } from './collection.ts';
import { collectionObject } from '../../../wire/collection.ts';

export const command = defineList({
  command: 'list',
  describe: 'List collections',
  builder: { account: textOption('Only of this account', 'account') },
  examples: [['latchkey collection list', 'with the products of each']],
  list: { path: collectionsPath, member: 'collections', item: collectionObject, row: collectionFields },
  query: ({ account }) => ({ account_id: account }),
});
