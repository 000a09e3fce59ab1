import { defineRequest } from '../../client/request.ts';
import { webhookPath, webhookPositional, webhookView } from './webhook.ts';

export const command = defineRequest({
  command: 'resume <id>',
  describe: 'Deliver to a paused endpoint again, or to a failing endpoint at once',
  builder: { id: webhookPositional },
  examples: [['latchkey webhook resume WEBHOOK_ID', 'when the receiver works again']],
  epilogue: 'The endpoint gets the events of the last 30 days that it has missed.',
  request: ({ id }) => ({ method: 'POST', path: `${webhookPath(id)}/resume` }),
  view: webhookView,
});
