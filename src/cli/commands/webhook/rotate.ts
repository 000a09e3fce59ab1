import { defineRequest } from '../../client/request.ts';
import { webhookPath, webhookPositional, webhookSecretView } from './webhook.ts';

export const command = defineRequest({
  command: 'rotate <id>',
  describe: 'Replace the secret of an endpoint; the old one also signs for a day',
  builder: { id: webhookPositional },
  examples: [['latchkey webhook rotate WEBHOOK_ID', 'the receiver has a day to change to the new secret']],
  request: ({ id }) => ({ method: 'POST', path: `${webhookPath(id)}/rotate` }),
  view: webhookSecretView,
});
