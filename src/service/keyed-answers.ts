import type { ChangedLicense } from '../domain/license.ts';
import { done, notFound, type Result } from '../domain/problem/problem.ts';
import { isOvertaken, type VoidedRedemption } from './checkout.ts';
import type { QueuedChange } from './outbox/license-change.ts';
import type { Keyed } from './ports.ts';
import type { AuthorityTransaction, Transaction } from './tables.ts';
import type { UseCaseName } from './writer.ts';

/*
 * What is stored of the answer to an agent that delivers a change of a license: the revision that the change has made, or 0.
 * A repeated request is answered with the license as it is then. An agent may have millions of stored answers.
 */

/** Null: the whole result is stored. */
export function shortAnswer(name: UseCaseName, result: Result<unknown>): number | null {
  if (!result.ok || (name !== 'changeLicense' && name !== 'queueChange')) return null;
  const { appliedRevision = 0 } = result.value as ChangedLicense | QueuedChange;
  return appliedRevision;
}

/** Makes the answer again. `stored`: of `shortAnswer`. */
export async function answerAgain(
  transaction: AuthorityTransaction,
  name: UseCaseName,
  { licenseKey }: { licenseKey: string },
  stored: number,
): Promise<Result<unknown>> {
  const applied = stored === 0 ? {} : { appliedRevision: stored };
  if (name === 'queueChange') {
    // The writer of an agent has all tables.
    const snapshot = (transaction as Transaction).snapshots.get(licenseKey);
    return snapshot === null ? notFound('license') : done({ snapshot, operationId: null, ...applied });
  }
  const license = await transaction.licenses.get(licenseKey);
  return license === null ? notFound('license') : done({ ...license, ...applied });
}

/** Whether a change is carried out again, although its answer is stored. */
export async function isToRepeat(
  transaction: AuthorityTransaction,
  name: UseCaseName,
  { command, keyed }: { command: unknown; keyed: Keyed | undefined },
  stored: unknown,
): Promise<boolean> {
  if (name !== 'voidRedemption' || keyed === undefined) return false;
  const result = stored as Result<VoidedRedemption>;
  if (!result.ok) return false;
  const asked = { ...(command as { accountId: string; order: string }), createdAt: keyed.createdAt };
  return await isOvertaken(transaction, asked, result.value);
}
