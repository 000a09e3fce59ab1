import { webhookObject } from '../../../wire/webhook.ts';
import { defineList } from '../../client/request.ts';
import { webhookRow, webhooksPath } from './webhook.ts';

export const command = defineList({
  command: 'list',
  describe: 'List the endpoints that get events',
  builder: {},
  examples: [['latchkey webhook list', 'whether events arrive, and how many wait']],
  list: { path: webhooksPath, member: 'webhooks', item: webhookObject, row: webhookRow },
});
