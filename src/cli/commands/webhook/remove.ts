import { defineRequest } from '../../client/request.ts';
import { webhookPath, webhookPositional, webhookView } from './webhook.ts';

export const command = defineRequest({
  command: 'remove <id>',
  describe: 'Remove an endpoint: it gets no further event',
  builder: { id: webhookPositional },
  examples: [['latchkey webhook remove WEBHOOK_ID', 'events that wait for it are not sent']],
  request: ({ id }) => ({ method: 'DELETE', path: webhookPath(id) }),
  view: {
    ...webhookView,
    show: (removed, ...rest) => ['removed', ...[webhookView.show(removed, ...rest)].flat()],
  },
});
