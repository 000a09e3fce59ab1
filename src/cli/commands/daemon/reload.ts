import { defineRequest } from '../../client/request.ts';
import { formatFields } from '../../format.ts';
import { reloadObject } from '../../../wire/status.ts';

export const command = defineRequest({
  command: 'reload',
  describe: 'Let the daemon read its configuration again',
  builder: {},
  examples: [['latchkey reload', 'after latchkey config check; an invalid configuration changes nothing']],
  epilogue: 'With an invalid configuration, the exit code is 78.',
  request: () => ({ method: 'POST', path: '/admin/v1/reload' }),
  view: {
    schema: reloadObject,
    show: ({ changed, restart }) =>
      formatFields({
        changed: changed.length === 0 ? 'nothing' : changed.join(', '),
        'needs a restart': restart.length === 0 ? null : restart.join(', '),
      }),
  },
});
