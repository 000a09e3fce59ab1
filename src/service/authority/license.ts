import { isSameState, type License } from '../../domain/license.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import { licenseNotFound } from '../access/license-access.ts';
import type { Context } from '../ports.ts';
import type { AuthorityTransaction } from '../tables.ts';
import type { LicenseChange } from './tables.ts';

/** Counts or undoes a use, enables or disables a license (specification 4.4). */
export async function changeLicense(
  { licenses }: AuthorityTransaction,
  change: Omit<LicenseChange, 'remembered'>,
  { now, actor, keepsHistory }: Context,
): Promise<Result<License>> {
  const remembered = keepsHistory ? { at: now, credential: actor } : null;
  const changed = await licenses.change({ ...change, remembered });
  if (changed === null) return licenseNotFound();
  const { before, after } = changed;
  return isSameState(before, after) ? { ...done(after), unchanged: true } : done(after);
}
