import { deliveryObject } from '../../../wire/webhook.ts';
import { defineList } from '../../client/request.ts';
import { deliveryRow, webhookPositional, webhooksPath } from './webhook.ts';

export const command = defineList({
  command: 'deliveries <id>',
  describe: 'List the events that were sent to an endpoint, the latest first',
  builder: { id: webhookPositional },
  examples: [['latchkey webhook deliveries WEBHOOK_ID', 'what the receiver answered']],
  list: { path: webhooksPath, member: 'deliveries', item: deliveryObject, row: deliveryRow },
  within: ({ id }) => `/${encodeURIComponent(id)}/deliveries`,
});
