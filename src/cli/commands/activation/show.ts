import { defineRequest } from '../../client/request.ts';
import { positional } from '../../command.ts';
import { activationPath, activationView } from './activation.ts';

export const command = defineRequest({
  command: 'show <id>',
  describe: 'Show a device that has asked for a seat',
  builder: { id: positional('Id of the activation, as in activation list') },
  examples: [['latchkey activation show ACTIVATION_ID', 'its state, seat, lease and uses']],
  request: ({ id }) => ({ path: activationPath(id) }),
  view: activationView,
});
