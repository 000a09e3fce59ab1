import { done, type Result } from '../../../domain/problem/problem.ts';
import type { AuthorityTransaction } from '../../../service/tables.ts';

/** The most license keys in one event. */
const maxKeys = 100;
/** The most licenses that are read for it, with keys that were replaced. */
const maxRead = 1_000;

/** Adds the event with which the seller's own system sends a buyer the license keys of an e-mail address. */
export async function requestRecovery(
  { licenses, events }: Pick<AuthorityTransaction, 'licenses' | 'events'>,
  { buyerEmail }: { buyerEmail: string },
): Promise<Result<null>> {
  const found = await licenses.list({ buyerEmail }, { limit: maxRead, offset: 0 });
  // A key that was replaced may have leaked.
  const inUse = found.filter(({ replacedBy }) => replacedBy === undefined);
  const licenseKeys = inUse.slice(0, maxKeys).map(({ licenseKey }) => licenseKey);
  if (licenseKeys.length === 0) return { ...done(null), unchanged: true };
  events.add({ type: 'license.recovery_requested', subject: JSON.stringify(licenseKeys) });
  return done(null);
}
