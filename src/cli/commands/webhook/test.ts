import { attemptObject } from '../../../wire/webhook.ts';
import { defineRequest } from '../../client/request.ts';
import { exitCode } from '../../exit-code.ts';
import { formatFields } from '../../format.ts';
import { attemptFields, webhookPath, webhookPositional } from './webhook.ts';

export const command = defineRequest({
  command: 'test <id>',
  describe: 'Send a test event to an endpoint now',
  builder: { id: webhookPositional },
  examples: [
    ['latchkey webhook test WEBHOOK_ID', 'whether the receiver can be reached, and accepts the signature'],
  ],
  request: ({ id }) => ({ method: 'POST', path: `${webhookPath(id)}/test` }),
  view: {
    schema: attemptObject,
    show: (attempt) => formatFields(attemptFields(attempt)),
    exitCode: ({ delivered }) => (delivered ? exitCode.done : exitCode.failed),
  },
});
