import type { NewEvent } from '../domain/event.ts';
import { done, type Result } from '../domain/problem/problem.ts';
import { features } from '../features.ts';
import type { Context } from './ports.ts';
import type { AuthorityTransaction, Reader, Transaction } from './tables.ts';

/** Adds an event if there is one. */
export function note({ events }: Pick<AuthorityTransaction, 'events'>, event: NewEvent | null): void {
  if (event !== null) events.add(event);
}

/** Whether anybody gets events. */
export function areEventsWanted(reader: Reader): boolean {
  return features.some(({ events }) => events?.isWanted(reader) === true);
}

/** Stores the events of a use case, in its transaction. */
export async function storeEvents(
  transaction: AuthorityTransaction,
  context: Pick<Context, 'now' | 'random'>,
): Promise<void> {
  const noted = transaction.events.take();
  if (noted.length === 0) return;
  for (const { events } of features) await events?.store(transaction, noted, context);
}

const lastUpstreamState = 'webhook_upstream_state';

/** The upstream is up or down. Only a change is an event, also over a restart; the first state is none. */
export function recordUpstreamState(
  { settings, events }: Transaction,
  { state }: { state: 'up' | 'down' },
): Result<null> {
  const before = settings.get(lastUpstreamState) ?? 'up';
  if (before === state) return { ...done(null), unchanged: true };
  settings.set(lastUpstreamState, state);
  events.add({ type: `upstream.${state}`, subject: null });
  return done(null);
}
