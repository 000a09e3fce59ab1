import type { Reach } from '../../domain/principal.ts';
import { changeLicense as change, type License, type LicenseTrigger } from '../../domain/license.ts';
import { done, type Result } from '../../domain/problem.ts';
import { licenseNotFound, reachableLicense } from '../access/reach.ts';
import type { Transaction } from '../tables.ts';

export type LicenseChange = { reach: Reach; licenseKey: string; trigger: Exclude<LicenseTrigger, 'refund'> };

/** Records or takes back a use, enables or disables, on the authority (specification 4.4). */
export function changeLicense(
  transaction: Transaction,
  { reach, licenseKey, trigger }: LicenseChange,
): Result<License> {
  const license = reachableLicense(transaction, reach, licenseKey);
  if (license === null) return licenseNotFound();
  const changed = change(license, trigger);
  transaction.licenses.put(changed);
  return done(changed);
}
