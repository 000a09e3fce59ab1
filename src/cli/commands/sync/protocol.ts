import { defineRequest } from '../../client/request.ts';
import { positionalGroup } from '../../command.ts';
import { syncView } from './sync.ts';

export const command = defineRequest({
  command: 'protocol <protocol>',
  describe: 'Choose how changes reach an upstream that is Latchkey',
  builder: {
    protocol: {
      choices: ['automatic', 'plain'],
      demandOption: true,
      group: positionalGroup,
      describe: 'automatic: /sync/v1 if the upstream has it; plain: the API of the specification',
    },
  },
  examples: [
    ['latchkey sync protocol plain', 'only if the upstream was replaced by a store without /sync/v1'],
    ['latchkey sync protocol automatic', 'as before'],
  ],
  epilogue:
    'With plain, changes whose push was not answered may have been applied: they are read back, or wait for your decision.',
  request: ({ protocol }) => ({ method: 'POST', path: '/admin/v1/sync/protocol', json: { protocol } }),
  view: syncView,
});
