import type { App } from '../../http/app.ts';
import { isUpstreamKnown } from '../../service/outbox/upstream-epoch.ts';
import type { Awaitable } from '../../service/tables.ts';
import type { OpenedStore } from './opened-store.ts';

/** How long the epoch of a database is kept, in ms. It changes when another server takes over. */
const epochKeptMs = 1_000;

/** What each answer to an agent names as the history of this store. An agent names none until it knows its upstream. */
export function epochOf({ reader, local, current, clock }: OpenedStore): App['epoch'] {
  const { role } = current.configuration;
  if (role === 'holder') return () => null;
  if (local !== null)
    return () => (role === 'agent' && !isUpstreamKnown(local.reader) ? null : local.reader.settings.epoch());
  let read: { epoch: Awaitable<string | null>; at: number } | null = null;
  return () => {
    const now = clock.monotonic();
    if (read === null || now - read.at > epochKeptMs) read = { epoch: reader.settings.epoch(), at: now };
    return read.epoch;
  };
}
