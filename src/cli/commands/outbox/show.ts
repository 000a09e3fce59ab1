import { defineRequest } from '../../client/request.ts';
import { positional } from '../../command.ts';
import { operationPath, operationView } from './operation.ts';

export const command = defineRequest({
  command: 'show <id>',
  describe: 'Show a change',
  builder: { id: positional('Id of the change', 'operation') },
  examples: [['latchkey outbox show OPERATION_ID', 'its state, and what each decision would do']],
  request: ({ id }) => ({ path: operationPath(id) }),
  view: operationView,
});
