import { defineRequest } from '../../client/request.ts';
import { positional } from '../../command.ts';
import { keepOldOption, readKeepOld } from '../../values.ts';
import { accountsPath, newApiKeyView } from './account.ts';

export const command = defineRequest({
  command: 'roll <account>',
  describe: 'Create a new API key; the old one stops at once, or after a while',
  builder: { account: positional('Account id', 'account'), 'keep-old': keepOldOption },
  examples: [['latchkey account roll default --keep-old 24h', 'callers have a day to change to the new one']],
  request: (args) => ({
    method: 'POST',
    path: `${accountsPath}/${encodeURIComponent(args.account)}/roll-key`,
    json: { keep_old_s: readKeepOld(args.keepOld) },
  }),
  view: newApiKeyView,
});
