import { done, type Result } from '../../../domain/problem/problem.ts';
import type { Context } from '../../../service/ports.ts';
import type { AuthorityTransaction } from '../../../service/tables.ts';
import { dayMs } from '../../../domain/time.ts';

/** `lease.expiring` comes this long before the end of a lease that was not renewed. */
export const expiringMs = 3 * dayMs;

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
