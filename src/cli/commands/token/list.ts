import { defineList } from '../../client/request.ts';
import { tokenFields, tokensPath } from './token.ts';
import { tokenObject } from '../../../wire/token.ts';

export const command = defineList({
  command: 'list',
  describe: 'List tokens, but not their secret values',
  builder: {},
  examples: [['latchkey token list --all', 'when each was last used, to find those to revoke']],
  list: { path: tokensPath, member: 'tokens', item: tokenObject, row: tokenFields },
});
