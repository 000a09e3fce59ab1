import { done, type Result } from '../../../domain/problem/problem.ts';
import type { AuthorityTransaction } from '../../../service/tables.ts';

/** The most license keys in one event. */
const maxKeys = 100;

/** Adds the event with which the seller's own system sends a buyer the license keys of an e-mail address. */
export async function requestRecovery(
  { licenses, events }: Pick<AuthorityTransaction, 'licenses' | 'events'>,
  { buyerEmail }: { buyerEmail: string },
): Promise<Result<null>> {
  const found = await licenses.list({ buyerEmail }, { limit: maxKeys, offset: 0 });
  const licenseKeys = found.map(({ licenseKey }) => licenseKey);
  if (licenseKeys.length === 0) return { ...done(null), unchanged: true };
  events.add({ type: 'license.recovery_requested', subject: JSON.stringify(licenseKeys) });
  return done(null);
}
