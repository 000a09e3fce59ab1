import { done, failWith, notFound, type Result } from '../../../domain/problem/problem.ts';
import { note } from '../../../service/events.ts';
import type { Context } from '../../../service/ports.ts';
import type { AuthorityTransaction } from '../../../service/tables.ts';
import { maxEndedActivations, movesWithinMs, type Activation } from '../../leases/domain/lease.ts';
import { hasSeat, leaseTermsFor, seatEvent } from '../../leases/domain/lease-rules.ts';
import { seatEnd } from '../domain/seat-end.ts';

/** Frees the seat of a device for the buyer of its license. Refuses if the device is in use, or if no move is left. */
export async function freeBuyersSeat(
  { activations, licenses, products, events }: AuthorityTransaction,
  { licenseKey, activationId }: { licenseKey: string; activationId: string },
  { now }: Pick<Context, 'now'>,
): Promise<Result<Activation>> {
  await activations.lockLicense(licenseKey);
  const before = await activations.get(activationId);
  const license = await licenses.get(licenseKey);
  const product = await products.get(license?.productKey ?? '');
  if (license === null || product === null || before?.licenseKey !== licenseKey || !hasSeat(before, now))
    return notFound('activation');
  const moves = await activations.movesSince(licenseKey, now - movesWithinMs + 1);
  const end = seatEnd(before, {
    refreshMs: leaseTermsFor(license, product.leaseTerms).refreshMs,
    moves,
    now,
  });
  if (end.kind === 'in_use') return failWith('no_seat_left', 'The device is in use.');
  if (end.kind === 'no_move_left') return failWith('no_move_left', 'No move is left.');
  await activations.put(end.after);
  note({ events }, seatEvent(activationId, before.state, end.after.state));
  await activations.pruneEnded(licenseKey, maxEndedActivations, now);
  return done(end.after);
}
