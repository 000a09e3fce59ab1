import { operationStates } from '../../../domain/outbox/operation.ts';
import { defineList } from '../../client/request.ts';
import { textOption } from '../../command.ts';
import { instant, whole } from '../../format.ts';
import { formatState, outboxPath } from './operation.ts';
import { operationObject } from '../../../wire/operation.ts';

export const command = defineList({
  command: 'list',
  describe: 'List the changes that are not finished',
  builder: {
    state: { choices: operationStates, describe: 'Only in this state; default: all that are not finished' },
    key: textOption('Only unfinished changes of this license key'),
  },
  examples: [['latchkey outbox list --state dead', 'changes that the upstream refused']],
  list: {
    path: outboxPath,
    member: 'operations',
    item: operationObject,
    row: (each) => ({
      id: whole(each.id),
      change: each.kind,
      about: each.subject,
      state: formatState(each),
      attempts: each.attempts,
      next: instant(each.next_at),
      'last error': each.last_error,
    }),
  },
  query: ({ state, key }) => ({ state, license_key: key }),
});
