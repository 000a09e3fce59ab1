import { replayObject } from '../../../wire/webhook.ts';
import { defineRequest } from '../../client/request.ts';
import { positional } from '../../command.ts';
import { exitCode } from '../../exit-code.ts';
import { formatTable } from '../../format.ts';
import { attemptFields } from './webhook.ts';

export const command = defineRequest({
  command: 'replay <event>',
  describe: 'Send an event again, under the same id',
  builder: { event: positional('Id of the event, as in webhook deliveries') },
  examples: [['latchkey webhook replay EVENT_ID', 'after the receiver has lost the event']],
  epilogue:
    'Each endpoint that gets events of this type gets the event again. A paused endpoint stays paused.',
  request: ({ event }) => ({
    method: 'POST',
    path: `/admin/v1/webhook-events/${encodeURIComponent(event)}/replay`,
  }),
  view: {
    schema: replayObject,
    show: ({ attempts }) => formatTable(attempts.map(attemptFields)),
    exitCode: ({ attempts }) =>
      attempts.every(({ delivered }) => delivered) ? exitCode.done : exitCode.failed,
  },
});
