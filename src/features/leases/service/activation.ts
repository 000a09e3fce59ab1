import { maxEndedActivations, movesWithinMs, type Activation } from '../domain/lease.ts';
import { done, notFound, type Result } from '../../../domain/problem/problem.ts';
import { seatEvent, endAs, freeSeat, hasSeat } from '../domain/lease-rules.ts';
import { endsToReport } from '../../../service/ends.ts';
import { note } from '../../../service/events.ts';
import type { Context } from '../../../service/ports.ts';
import type { AuthorityTransaction } from '../../../service/tables.ts';
import { dayMs } from '../../../domain/time.ts';

/** `accountId`: only activations of the account's products; null: all activations. */
type ChangeActivation = { activationId: string; accountId: string | null };

/** Ends an activation and frees its seat. Its device may take a seat again. */
export async function endActivation(
  transaction: AuthorityTransaction,
  command: ChangeActivation,
  context: Context,
): Promise<Result<Activation>> {
  return await change(transaction, { ...command, state: 'ended' }, context);
}

/** Blocks the device of an activation, and frees its seat. The device gets no lease of this license again. */
export async function blockActivation(
  transaction: AuthorityTransaction,
  command: ChangeActivation,
  context: Context,
): Promise<Result<Activation>> {
  return await change(transaction, { ...command, state: 'blocked' }, context);
}

async function change(
  { activations, products, events }: AuthorityTransaction,
  { activationId, accountId, state }: ChangeActivation & { state: 'ended' | 'blocked' },
  { now }: Context,
): Promise<Result<Activation>> {
  const licenseKey = (await activations.get(activationId))?.licenseKey;
  if (licenseKey === undefined) return notFound('activation');
  await activations.lockLicense(licenseKey);
  // The activation may have changed before the lock.
  const before = await activations.get(activationId);
  const product = before === null || accountId === null ? null : await products.get(before.productKey);
  if (before === null || (accountId !== null && product?.accountId !== accountId))
    return notFound('activation');
  const moves = await activations.movesSince(licenseKey, now - movesWithinMs + 1);
  const after = endAs(freeSeat(before, { moves, now }), state);
  if (after.state === before.state && after.seatUntil === before.seatUntil) {
    return { ...done(before), unchanged: true };
  }
  await activations.put(after);
  note({ events }, seatEvent(activationId, before.state, after.state));
  if (!hasSeat(after, now)) await activations.pruneEnded(licenseKey, maxEndedActivations, now);
  return done(after);
}

/** `lease.expiring` comes this long before the end of a lease that was not renewed. */
export const expiringMs = 3 * dayMs;

const leasesReported = 'webhook_leases_reported';

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
  const ends = await endsToReport(settings, { name: leasesReported, from: now, until }, (...range) =>
    activations.expiring(...range),
  );
  let reportedNow = 0;
  for (const { key } of ends) {
    const answer = (await activations.get(key))?.answer;
    // A device that renews in time has a lease that ends with its license.
    if (answer?.kind === 'lease' && answer.lease.refreshAt > now) continue;
    events.add({ type: 'lease.expiring', subject: key });
    reportedNow += 1;
  }
  return done({ events: reportedNow });
}
