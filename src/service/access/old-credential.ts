import { done, type Result } from '../../domain/problem/problem.ts';
import type { AuthorityTransaction } from '../tables.ts';
import type { CredentialOwner } from './tables.ts';

/**
 * Lets a credential that is being rolled go on until an instant (epoch ms), or stops it at once (null). One
 * that was rolled before and still went on is stopped either way.
 */
export async function keepOldCredential(
  { oldCredentials }: AuthorityTransaction,
  owner: CredentialOwner,
  digest: string,
  until: number | null,
): Promise<void> {
  if (until === null) await oldCredentials.remove(owner);
  else await oldCredentials.put({ ...owner, until }, digest);
}

/** Removes old credentials that have stopped. `verifiedNow`: epoch ms that have certainly been reached. */
export async function pruneOldCredentials(
  { oldCredentials }: AuthorityTransaction,
  { verifiedNow }: { verifiedNow: number },
): Promise<Result<null>> {
  await oldCredentials.prune(verifiedNow);
  return done(null);
}
