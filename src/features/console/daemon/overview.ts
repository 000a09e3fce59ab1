import type { Overview, Status } from '../../../service/status.ts';
import type { OpenedStore } from '../../../daemon/store/opened-store.ts';
import { attentionOf } from './attention.ts';

/** What the first page of the console shows, from the status. */
export function overviewOf({ local, current }: OpenedStore, status: Status, startedAt: number): Overview {
  const isAgent = status.outbox !== null;
  const maxPending = isAgent ? current.configuration.sync.maxPending : null;
  const oldestAt = isAgent ? (local?.reader.operations.oldestAt() ?? null) : null;
  return { ...status, startedAt, oldestAt, attention: attentionOf(status, { maxPending }) };
}
