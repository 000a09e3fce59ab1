import { defineRequest } from '../../client/request.ts';
import { positional, textOption } from '../../command.ts';
import { eventTypes } from '../../../domain/webhook.ts';
import { webhookSecretView, webhooksPath } from './webhook.ts';

export const command = defineRequest({
  command: 'add <url>',
  describe: 'Add an endpoint that gets events, and show its secret',
  builder: {
    url: positional('Where to send events'),
    events: textOption('Types of events, separated by commas; without it, all types'),
  },
  examples: [
    ['latchkey webhook add https://example.com/latchkey', 'gets every event'],
    [
      'latchkey webhook add https://example.com/latchkey --events license.issued,purchase.refunded',
      'gets sales and refunds',
    ],
  ],
  epilogue: `Types: ${eventTypes.join(', ')}. Events are signed as Standard Webhooks says. The endpoint gets the events from now on.`,
  request: ({ url, events }) => ({
    method: 'POST',
    path: webhooksPath,
    json: { url, events: events?.split(',').map((each) => each.trim()) },
  }),
  view: webhookSecretView,
});
