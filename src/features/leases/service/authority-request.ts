import { usesAfter, type UseTotals } from '../domain/lease.ts';
import { isSameState, parseLicenseKey, type HistoryEntry, type License } from '../../../domain/license.ts';
import { endOf, leaseTermsFor } from '../domain/lease-rules.ts';
import { done, notFound, type Result } from '../../../domain/problem/problem.ts';
import { recordChange } from '../../../service/history.ts';
import type { Context } from '../../../service/ports.ts';
import { storedLicenseKey } from '../../../service/pasted-keys.ts';
import type { AuthorityTransaction } from '../../../service/tables.ts';
import { answerRequest, type AnsweredRequest, type LeaseCommand } from './answer.ts';

/** `accountId`: only products of this account count; null: all products. */
type AnswerLeaseRequest = LeaseCommand & { accountId: string | null };

/**
 * Answers a request of a device at an authority. The reads are the same for an unknown license and a license of another
 * product, so that the response time does not reveal which license keys exist.
 */
export async function answerLeaseRequest(
  transaction: AuthorityTransaction,
  command: AnswerLeaseRequest,
  context: Context,
): Promise<Result<AnsweredRequest>> {
  const { licenses, products, activations } = transaction;
  const { request, device } = command.signedRequest;
  const licenseKey = await storedLicenseKey(transaction, parseLicenseKey(request.licenseKey) ?? '');
  await activations.lockLicense(licenseKey);
  const license = await licenses.get(licenseKey);
  const product = await products.get(request.productKey);
  const stored = await activations.ofDevice(licenseKey, device);
  const isOfAccount = command.accountId === null || product?.accountId === command.accountId;
  if (license === null || product === null || license.productKey !== product.productKey || !isOfAccount) {
    return notFound('license');
  }
  const countUses = async (growth: UseTotals): Promise<Result<License>> =>
    done(await storeUses(transaction, license, growth, context));
  const issued = {
    license,
    terms: leaseTermsFor(license, product.leaseTerms),
    stored,
    knownUntil: Infinity,
    endsAt: endOf(license),
    isBuyerForgotten: license.buyerEmail === '',
    countUses,
  };
  return await answerRequest(transaction, issued, command, context);
}

/** Counts uses of a license. Its history gets one entry for all recorded uses, and one for all returned uses. */
async function storeUses(
  { licenses, history }: AuthorityTransaction,
  license: License,
  { recorded, returned }: UseTotals,
  context: Context,
): Promise<License> {
  let counted = license;
  const count = async (change: HistoryEntry['change'], growth: UseTotals): Promise<void> => {
    const before = counted;
    counted = { ...before, uses: usesAfter(before.uses, growth) };
    if (!isSameState(before, counted))
      await recordChange(history, { change, before, after: counted }, context);
  };
  await count('usage', { recorded, returned: 0 });
  await count('decrease', { recorded: 0, returned });
  if (!isSameState(license, counted)) await licenses.setState(counted, false);
  return counted;
}
