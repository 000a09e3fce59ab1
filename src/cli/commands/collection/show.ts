import { defineRequest } from '../../client/request.ts';
import { positional } from '../../command.ts';
import { collectionPath, collectionView } from './collection.ts';

export const command = defineRequest({
  command: 'show <collection>',
  describe: 'Show a collection',
  builder: { collection: positional('Collection id', 'collection') },
  examples: [['latchkey collection show c1', 'its name and products']],
  request: ({ collection }) => ({ path: collectionPath(collection) }),
  view: collectionView,
});
