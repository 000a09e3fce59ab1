import { enabledEvent } from '../../../domain/event.ts';
import { issuedKeyFault, licenseKeyBytes, licenseKeyFrom, type License } from '../../../domain/license.ts';
import { done, failWith, failWithFaults, type Result } from '../../../domain/problem/problem.ts';
import { changedTerms, hasTerms, withStatus } from '../../../domain/terms.ts';
import { licenseToChange, type OfLicense } from '../../../service/authority/license-of-tenant.ts';
import { note } from '../../../service/events.ts';
import { recordChange } from '../../../service/history.ts';
import type { Context } from '../../../service/ports.ts';
import type { AuthorityTransaction } from '../../../service/tables.ts';

/**
 * Gives a license another key. The license keeps its count, terms, purchases, history and seats; the old key stays
 * disabled. `newKey`: in its stored form; null: generate one.
 */
export async function rekeyLicense(
  transaction: AuthorityTransaction,
  { newKey, ...which }: OfLicense & { newKey: string | null },
  context: Context,
): Promise<Result<License>> {
  const { now, random } = context;
  const found = await licenseToChange(transaction, which);
  if (!found.ok) return found;
  const fault = newKey === null ? null : issuedKeyFault(newKey);
  if (fault !== null) return failWithFaults([fault]);
  const { license: old, product } = found.value;
  const license = {
    ...old,
    // The old license may not have the grace of its product yet.
    ...(hasTerms(old) && changedTerms(old, {}, product.licenseTerms.expiryGraceMs)),
    licenseKey: newKey ?? licenseKeyFrom(random.bytes(licenseKeyBytes)),
    revision: 0,
  };
  if (!(await transaction.licenses.add(license)))
    return failWith('license_key_taken', 'There already is a license with this key.');
  await transaction.customers.replaceKey(old.licenseKey, license.licenseKey);
  await transaction.activations.copyToKey(old.licenseKey, license.licenseKey, random.uuid(now));
  const disabled = { ...old, enabled: false };
  await recordChange(transaction.history, { change: 'rekey', before: old, after: disabled }, context);
  await recordChange(transaction.history, { change: 'rekey', before: license, after: license }, context);
  note(transaction, enabledEvent(old.licenseKey, old.enabled, false));
  transaction.events.add({ type: 'license.rekeyed', subject: old.licenseKey });
  return done(withStatus(license, now));
}

/**
 * Gives a license another buyer. Its devices keep their seats; `freesSeats`: they lose them, and their names are removed,
 * because they are those of the buyer before.
 */
export async function transferLicense(
  transaction: AuthorityTransaction,
  { buyerEmail, freesSeats, ...which }: OfLicense & { buyerEmail: string; freesSeats: boolean },
  context: Context,
): Promise<Result<License>> {
  const found = await licenseToChange(transaction, which);
  if (!found.ok) return found;
  const { activations, customers, history, events } = transaction;
  const { license: before } = found.value;
  const { licenseKey } = before;
  const ended = freesSeats ? await activations.activeOf(licenseKey) : [];
  if (before.buyerEmail === buyerEmail && ended.length === 0)
    return { ...done(withStatus(before, context.now)), unchanged: true };
  for (const activationId of ended) events.add({ type: 'seat.ended', subject: activationId });
  if (freesSeats) {
    await activations.endAll(licenseKey, context.now);
    await activations.removeNames([licenseKey]);
  }
  await activations.removeEmail([licenseKey], before.buyerEmail);
  await customers.setBuyer([licenseKey], buyerEmail);
  await recordChange(history, { change: 'transfer', before, after: before }, context);
  events.add({ type: 'license.transferred', subject: licenseKey });
  return done(withStatus({ ...before, buyerEmail }, context.now));
}

/** Sets the count of a license. A use that was counted before is in the count that is replaced. */
export async function setLicenseUses(
  transaction: AuthorityTransaction,
  { uses, ...which }: OfLicense & { uses: number },
  context: Context,
): Promise<Result<License>> {
  const found = await licenseToChange(transaction, which);
  if (!found.ok) return found;
  const { license: before } = found.value;
  if (before.uses === uses) return { ...done(withStatus(before, context.now)), unchanged: true };
  const after = { ...before, uses };
  await transaction.licenses.setState(after, false);
  await recordChange(transaction.history, { change: 'set_uses', before, after }, context);
  return done(withStatus(after, context.now));
}
