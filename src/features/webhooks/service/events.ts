import { expiringMs, type NewEvent } from '../domain/webhook.ts';
import { done, type Result } from '../../../domain/problem/problem.ts';
import type { Context } from '../../../service/ports.ts';
import type { AuthorityTransaction, Transaction } from '../../../service/tables.ts';

/** Stores the events of a use case, in its transaction. */
export async function storeEvents(
  { events, webhooks }: AuthorityTransaction,
  { now, random }: Pick<Context, 'now' | 'random'>,
): Promise<void> {
  for (const event of events.take()) {
    await webhooks.addEvent({ ...event, eventId: random.uuid(now), at: now });
  }
}

/** Adds an event if there is one. */
export function note({ events }: Pick<AuthorityTransaction, 'events'>, event: NewEvent | null): void {
  if (event !== null) events.add(event);
}

const lastUpstreamState = 'webhook_upstream_state';

/** The upstream is up or down. Only a change is an event, also over a restart; the first state is none. */
export function recordUpstreamState(
  transaction: Transaction,
  { state }: { state: 'up' | 'down' },
): Result<null> {
  const { settings, events } = transaction;
  const before = settings.get(lastUpstreamState) ?? 'up';
  if (before === state) return { ...done(null), unchanged: true };
  settings.set(lastUpstreamState, state);
  events.add({ type: `upstream.${state}`, subject: null });
  return done(null);
}

const leasesReported = 'webhook_leases_reported';
/** How many leases one commit reports. */
const maxReported = 5_000;

/**
 * Reports the leases that end in three days and were not renewed. A lease with a shorter term is not reported. Returns
 * how many were reported.
 */
export async function recordExpiringLeases(
  transaction: AuthorityTransaction,
  _: Record<string, never>,
  { now }: Pick<Context, 'now'>,
): Promise<Result<{ events: number }>> {
  const { settings, activations, events } = transaction;
  const until = now + expiringMs;
  const reported = Number((await settings.get(leasesReported)) ?? until);
  // A restored store, or a clock that was set back, must not stop the reports.
  const since = Math.max(now, Math.min(reported, until));
  const found = await activations.expiring(since, until, maxReported);
  const last = found.at(-1)?.expiresAt ?? until;
  // The next call also finds the leases that end in the same second as the last one.
  const isCut = found.length === maxReported && found[0]?.expiresAt !== last;
  const expiring = isCut ? found.filter(({ expiresAt }) => expiresAt < last) : found;
  for (const { activationId } of expiring) events.add({ type: 'lease.expiring', subject: activationId });
  await settings.set(leasesReported, String(isCut ? last - 1 : until));
  return done({ events: expiring.length });
}
