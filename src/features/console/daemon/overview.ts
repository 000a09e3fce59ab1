import type { Status } from '../../../service/status.ts';
import type { OpenedStore } from '../../../daemon/store/opened-store.ts';
import { asSentence } from '../../../domain/text.ts';
import { findingsOf } from '../../../wire/findings.ts';
import { serializeStatus } from '../../../wire/status.ts';
import type { Attention, Overview } from '../service/overview.ts';

/** What the first page of the console shows, from the status. */
export function overviewOf({ local, current }: OpenedStore, status: Status, startedAt: number): Overview {
  const oldestAt = status.outbox === null ? null : (local?.reader.operations.oldestAt() ?? null);
  const attention = attentionOf(status, current.configuration.sync.maxPending);
  return { ...status, startedAt, oldestAt, attention };
}

/** What needs a person, in sentences. They have instants and no ages, so that they stay the same for a while. */
export function attentionOf(status: Status, maxPending: number | null): readonly Attention[] {
  return findingsOf(serializeStatus(status), maxPending).flatMap(
    ({ code, level, what, advice, command, page = null }) =>
      level === 'ok'
        ? []
        : [
            {
              code,
              level,
              text: asSentence(what),
              advice: asSentence(advice ?? ''),
              command: command === undefined ? null : `latchkey ${command}`,
              page,
            },
          ],
  );
}
