import type { z } from 'zod';
import { defineRequest, type View } from '../../client/request.ts';
import type { Command } from '../../command.ts';
import { formatFields } from '../../format.ts';
import { formatOutbox, formatUpstream } from '../status/status-view.ts';
import { syncObject } from '../../../wire/status.ts';
import type { UpstreamObject } from '../../../wire/server/upstream.ts';
import type { Hint } from '../../hint.ts';

export const syncView: View<z.infer<typeof syncObject>> = {
  schema: syncObject,
  show: ({ upstream, outbox }, _answer, hint) =>
    formatFields({
      upstream: formatUpstream(upstream),
      outbox: formatOutbox(outbox),
      note: noteOn(upstream, hint),
    }),
};

function noteOn({ state }: UpstreamObject, hint: Hint): string | null {
  return state === 'paused' ? `nothing is sent to the store until: ${hint('sync resume')}` : null;
}

/** Declares a command that changes the sending to the upstream, and shows its state. */
export function defineSync(name: 'now' | 'pause' | 'resume', describe: string, meaning: string): Command {
  return defineRequest({
    command: name,
    describe,
    builder: {},
    examples: [[`latchkey sync ${name}`, meaning]],
    request: () => ({ method: 'POST', path: `/admin/v1/sync/${name}` }),
    view: syncView,
  });
}
