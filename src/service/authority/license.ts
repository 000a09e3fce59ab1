import {
  isSameState,
  type ChangedLicense,
  issuedKeyFault,
  licenseKeyBytes,
  licenseKeyFrom,
  licenseAfter,
} from '../../domain/license.ts';
import {
  done,
  type Result,
  notFound,
  unknownProduct,
  failWith,
  failWithFaults,
  limitReached,
} from '../../domain/problem/problem.ts';
import { enabledEvent } from '../../domain/event.ts';
import { asAnswered, changedTerms, hasTerms, type TermsChange, withStatus } from '../../domain/terms.ts';
import { endAfter, ownLeaseTermsFault } from './terms.ts';
import { note } from '../events.ts';
import type { Context } from '../ports.ts';
import type { AuthorityTransaction, LicenseChange } from '../tables.ts';
import type { PurchaseWithLicense } from '../../domain/catalogue.ts';
import { recordChange } from '../history.ts';

type ChangeLicense = Omit<LicenseChange, 'historyEntry'> & {
  /** For an enable of an agent: the revision at which its caller saw the license. */
  seenRevision?: number | null;
};

/** Counts or undoes a use, enables or disables a license (specification 4.4). */
export async function changeLicense(
  { licenses, events }: AuthorityTransaction,
  { seenRevision = null, ...change }: ChangeLicense,
  { now, actor, recordsHistory }: Context,
): Promise<Result<ChangedLicense>> {
  const { licenseKey, trigger } = change;
  // The reach of the credential is checked by the change. A license out of reach is not told from a missing one.
  const isRevoked =
    trigger === 'enable' &&
    seenRevision !== null &&
    (await licenses.isRevokedSince(licenseKey, seenRevision));
  const historyEntry = recordsHistory ? { at: now, credential: actor } : null;
  const changed = await licenses.change({
    ...change,
    trigger: isRevoked ? 'disable' : trigger,
    historyEntry,
  });
  if (changed === null) return notFound('license');
  if (isRevoked)
    return failWith('license_revoked', 'The license was disabled after the caller of this enable saw it.');
  const { before, after } = changed;
  note({ events }, enabledEvent(after.licenseKey, before.enabled, after.enabled));
  if (trigger === 'enable' && !after.enabled)
    return failWith('license_revoked', 'Another license key has taken the place of this one.');
  // A use always changes the count.
  if (trigger === 'usage' && isSameState(before, after)) return limitReached();
  const answered = asAnswered(after, now);
  if (isSameState(before, after)) return { ...done(answered), unchanged: true };
  return done({ ...answered, ...(after.revision !== undefined && { appliedRevision: after.revision }) });
}

type NewPurchase = {
  productKey: string;
  buyerEmail: string;
  /** In its stored form; null: generate one. */
  licenseKey: string | null;
  /** Null: now. Otherwise the date of the sale in an existing store, from which clients compute trials. */
  soldAt: number | null;
  uses: number;
  enabled: boolean;
  /** Terms that are missing are those of the product. */
  terms?: TermsChange;
};

export async function addPurchase(
  transaction: AuthorityTransaction,
  command: NewPurchase,
  { now, random }: Context,
): Promise<Result<PurchaseWithLicense>> {
  const { productKey, buyerEmail, uses, enabled, terms: sent = {} } = command;
  const product = await transaction.products.get(productKey);
  if (product === null) return failWithFaults([unknownProduct]);
  // A purchase from an existing store is accepted for an archived product, too.
  if (product.archivedAt !== null && command.soldAt === null) {
    return failWith('product_archived', 'This product is no longer sold.');
  }
  const fault = command.licenseKey === null ? null : issuedKeyFault(command.licenseKey);
  if (fault !== null) return failWithFaults([fault]);
  const licenseKey = command.licenseKey ?? licenseKeyFrom(random.bytes(licenseKeyBytes));
  const createdAt = command.soldAt ?? now;
  const leaseFault = ownLeaseTermsFault(product, sent);
  if (leaseFault !== null) return leaseFault;
  const { licenseFor, entitlements, expiryGraceMs } = product.licenseTerms;
  const end = licenseFor === null || sent.expiresAt !== undefined ? null : endAfter(licenseFor, createdAt);
  if (end?.ok === false) return end;
  const expiresAt = end === null ? sent.expiresAt : end.value;
  const given = { ...sent, expiresAt, entitlements: sent.entitlements ?? entitlements };
  const terms = changedTerms({}, given, expiryGraceMs);
  const license = {
    licenseKey,
    productKey,
    buyerEmail,
    uses,
    enabled,
    createdAt,
    ...(hasTerms(terms) && terms),
  };
  const purchase = { purchaseId: random.uuid(now), licenseKey, createdAt, refundedAt: null };
  if (!(await transaction.licenses.add(license))) {
    return failWith('license_key_taken', 'There already is a license with this key.');
  }
  await transaction.purchases.add(purchase);
  transaction.events.add({ type: 'license.issued', subject: licenseKey });
  return done({ purchase, license: withStatus(license, now) });
}

/** Refunds a purchase, which disables its license key (specification 3.1). A second refund changes nothing. */
export async function refundPurchase(
  transaction: AuthorityTransaction,
  { purchaseId }: { purchaseId: string },
  context: Context,
): Promise<Result<PurchaseWithLicense>> {
  const purchase = await transaction.purchases.get(purchaseId);
  const license = purchase === null ? null : await transaction.licenses.get(purchase.licenseKey);
  if (purchase === null || license === null) {
    return notFound('purchase');
  }
  if (purchase.refundedAt !== null)
    return { ...done({ purchase, license: withStatus(license, context.now) }), unchanged: true };
  const refunded = {
    purchase: { ...purchase, refundedAt: context.now },
    license: { ...licenseAfter(license, 'refund'), revision: (license.revision ?? 0) + 1 },
  };
  await transaction.purchases.setRefunded(refunded.purchase);
  await transaction.licenses.setState(refunded.license, true);
  const change = { change: 'refund', before: license, after: refunded.license } as const;
  await recordChange(transaction.history, change, context);
  transaction.events.add({ type: 'purchase.refunded', subject: license.licenseKey });
  note(transaction, enabledEvent(license.licenseKey, license.enabled, refunded.license.enabled));
  return done({ ...refunded, license: withStatus(refunded.license, context.now) });
}
