import { defineRequest } from '../../client/request.ts';
import { positional } from '../../command.ts';
import { formatFields } from '../../format.ts';
import { auditFields, auditPath } from './list.ts';
import { actObject } from '../../../wire/audit.ts';

export const command = defineRequest({
  command: 'show <id>',
  describe: 'Show one recorded act',
  builder: { id: positional('Number of the act, as in audit list', 'act') },
  examples: [['latchkey audit show 17', 'who did it, when, and to what']],
  request: ({ id }) => ({ path: `${auditPath}/${encodeURIComponent(id)}` }),
  view: { schema: actObject, show: (act) => formatFields(auditFields(act)) },
});
