import { defineList } from '../../client/list.ts';
import { textOption } from '../../command.ts';
import { collection, collectionFields, collectionsPath } from './collection.ts';

export const command = defineList({
  command: 'list',
  describe: 'List collections',
  builder: { account: textOption('Only of this account', 'account') },
  examples: [['latchkey collection list', 'with the products of each']],
  list: { path: collectionsPath, member: 'collections', item: collection, row: collectionFields },
  query: ({ account }) => ({ account_id: account }),
});
