import type { Reach } from '../../domain/principal.ts';
import { changeLicense as change, type License, type LicenseTrigger } from '../../domain/license.ts';
import { done, type Result } from '../../domain/problem.ts';
import { recordChange } from '../access/history.ts';
import { licenseNotFound, reachableLicense } from '../access/license-access.ts';
import type { Context } from '../ports.ts';
import type { AuthorityTransaction } from '../tables.ts';

export type LicenseChange = { reach: Reach; licenseKey: string; trigger: Exclude<LicenseTrigger, 'refund'> };

/** Counts a use or takes one back, enables or disables a license (specification 4.4). */
export async function changeLicense(
  transaction: AuthorityTransaction,
  { reach, licenseKey, trigger }: LicenseChange,
  context: Context,
): Promise<Result<License>> {
  const license = await reachableLicense(transaction, reach, licenseKey);
  if (license === null) return licenseNotFound();
  const changed = change(license, trigger);
  await transaction.licenses.setState(changed);
  // Enabling what is enabled, or taking a use back at 0, changes nothing that could be remembered.
  if (changed.uses !== license.uses || changed.enabled !== license.enabled) {
    await recordChange(transaction.history, { change: trigger, before: license, after: changed }, context);
  }
  return done(changed);
}
