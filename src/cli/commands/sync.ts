import type { z } from 'zod';
import { syncObject } from '../../wire/status.ts';
import { defineRequest, type View } from '../client/request.ts';
import type { Command } from '../command.ts';
import { formatFields } from '../format.ts';
import { formatOutbox, formatUpstream } from './status.ts';

const syncView: View<z.infer<typeof syncObject>> = {
  schema: syncObject,
  show: ({ upstream, outbox }, _answer, hint) =>
    formatFields({
      upstream: formatUpstream(upstream),
      outbox: formatOutbox(outbox),
      note: upstream.state === 'paused' ? `nothing is sent to the store until: ${hint('sync resume')}` : null,
    }),
};

export const commands = [
  defineSync(
    'now',
    'Send waiting changes at once, ignoring backoff and breaker',
    'after the store was repaired',
  ),
  defineSync('pause', 'Stop sending, even across restarts', 'before work on the store; changes wait'),
  defineSync(
    'resume',
    'Resume sending, and retry refused credentials',
    'after a pause, or when a refused credential was corrected',
  ),
];

/** Declares a command that changes the sending to the upstream, and shows its state. */
function defineSync(name: 'now' | 'pause' | 'resume', describe: string, meaning: string): Command {
  return defineRequest({
    command: name,
    describe,
    builder: {},
    examples: [[`latchkey sync ${name}`, meaning]],
    request: () => ({ method: 'POST', path: `/admin/v1/sync/${name}` }),
    view: syncView,
  });
}
