import type { SyncLoop, SyncLoopParts } from '../../../sync/sync.ts';
import { Follow } from '../sync/follow.ts';
import { changesRequest } from '../upstream/feed-wire.ts';

/** Follows license keys at the upstream of an agent. */
export function followUpstream(parts: SyncLoopParts): SyncLoop {
  const { syncUpstream, delivery } = parts;
  return new Follow({
    ...parts,
    changes: (productId, agent, request, signal) =>
      syncUpstream.ask(productId, changesRequest(agent, request), signal),
    onRecorded: () => delivery.wake(),
  });
}
