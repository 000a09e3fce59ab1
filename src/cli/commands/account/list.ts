import { defineList } from '../../client/request.ts';
import { whole } from '../../format.ts';
import { accountsPath } from './account.ts';
import { accountObject } from '../../../wire/account.ts';

export const command = defineList({
  command: 'list',
  describe: 'List accounts',
  builder: {},
  examples: [['latchkey account list', 'with the ids that other commands take']],
  list: {
    path: accountsPath,
    member: 'accounts',
    item: accountObject,
    row: ({ account_id, name }) => ({ account: whole(account_id), name }),
  },
});
