import { defineRequest } from '../../client/request.ts';
import { webhookPath, webhookPositional, webhookView } from './webhook.ts';

export const command = defineRequest({
  command: 'show <id>',
  describe: 'Show an endpoint that gets events',
  builder: { id: webhookPositional },
  examples: [['latchkey webhook show WEBHOOK_ID', 'why the last event could not be delivered']],
  request: ({ id }) => ({ path: webhookPath(id) }),
  view: webhookView,
});
