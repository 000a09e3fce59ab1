import { done, type Result } from '../domain/problem/problem.ts';
import type { Context } from './ports.ts';
import type { AuthorityTransaction } from './tables.ts';
import type { HistoryEntry, LicenseState, License } from '../domain/license.ts';

/** Adds a change of a license to its history, unless `history.keep` is 0. */
export function recordChange<Added>(
  history: { add(change: HistoryEntry): Added },
  { change, before, after }: Pick<HistoryEntry, 'change'> & { before: License; after: LicenseState },
  { now, actor, recordsHistory }: Context,
): Added | undefined {
  if (!recordsHistory) return undefined;
  const isAboutTerms = change === 'renew' || change === 'update';
  const state = ({ uses, enabled, expiresAt = null }: LicenseState): LicenseState => ({
    uses,
    enabled,
    ...(isAboutTerms && { expiresAt }),
  });
  return history.add({
    licenseKey: before.licenseKey,
    at: now,
    change,
    credential: actor,
    before: state(before),
    after: state(after),
  });
}

/** Removes up to `limit` changes from before an instant; returns how many. */
export async function pruneHistory(
  { history }: AuthorityTransaction,
  { before, limit }: { before: number; limit: number },
): Promise<Result<{ removed: number }>> {
  return done({ removed: await history.prune(before, limit) });
}
