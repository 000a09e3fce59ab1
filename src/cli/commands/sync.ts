import { ask } from '../client/ask.ts';
import { type Command, type CommandEntry, defineCommand, entry } from '../command.ts';
import { formatFields } from '../text/layout.ts';
import { formatOutbox, formatUpstream } from '../text/status.ts';
import { syncStatus } from '../client/wire.ts';

function syncCommand(act: 'now' | 'pause' | 'resume'): Command {
  return defineCommand(
    (yargs) => yargs,
    (args, output) =>
      ask(
        args,
        output,
        { method: 'POST', path: `/admin/v1/sync/${act}` },
        {
          schema: syncStatus,
          show: ({ upstream, outbox }) =>
            formatFields({
              upstream: formatUpstream(upstream),
              outbox: formatOutbox(outbox),
              note: upstream.state === 'paused' ? 'nothing goes up until: latchkey sync resume' : null,
            }),
        },
      ),
  );
}

/** `sync …`. */
export const syncCommands: readonly CommandEntry[] = [
  entry('now', 'Send what waits at once: no backoff, no breaker', syncCommand('now')),
  entry('pause', 'Send nothing more, across restarts too', syncCommand('pause')),
  entry('resume', 'Go on, and ask again where a credential was refused', syncCommand('resume')),
];
