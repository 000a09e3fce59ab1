import { z } from 'zod';
import { type AnswerView, defineRequest } from '../client/ask.ts';
import type { Command } from '../command.ts';
import { formatFields } from '../format.ts';
import { formatOutbox, formatUpstream, outboxStatus, upstreamStatus } from './status/status-view.ts';

const syncStatus = z.object({ upstream: upstreamStatus, outbox: outboxStatus });

const view: AnswerView<z.infer<typeof syncStatus>> = {
  schema: syncStatus,
  show: ({ upstream, outbox }, _answer, hint) =>
    formatFields({
      upstream: formatUpstream(upstream),
      outbox: formatOutbox(outbox),
      note: upstream.state === 'paused' ? `nothing is sent to the store until: ${hint('sync resume')}` : null,
    }),
};

/** `sync now`. */
export const syncNow: Command = syncCommand('now', 'after the store was repaired');

/** `sync pause`. */
export const pauseSync: Command = syncCommand('pause', 'before work on the store; changes wait');

/** `sync resume`. */
export const resumeSync: Command = syncCommand(
  'resume',
  'after a pause, or when a refused credential was corrected',
);

function syncCommand(act: 'now' | 'pause' | 'resume', says: string): Command {
  return defineRequest(
    (syntax) => syntax.example(`latchkey sync ${act}`, says),
    () => ({ method: 'POST', path: `/admin/v1/sync/${act}` }),
    view,
  );
}
