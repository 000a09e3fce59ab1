import { defineRequest } from '../../client/request.ts';
import { positional } from '../../command.ts';
import { formatFields } from '../../format.ts';
import { tokenFields, tokensPath } from './token.ts';
import { tokenObject } from '../../../wire/token.ts';

export const command = defineRequest({
  command: 'revoke <token>',
  describe: 'Revoke a token: it stops at once',
  builder: { token: positional('Token id, as in token list', 'token') },
  examples: [['latchkey token revoke TOKEN_ID', 'requests with it are refused from now on']],
  request: (args) => ({ method: 'DELETE', path: `${tokensPath}/${encodeURIComponent(args.token)}` }),
  view: { schema: tokenObject, show: (revoked) => ['revoked', formatFields(tokenFields(revoked))] },
});
