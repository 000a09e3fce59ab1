import type { Purchase } from '../../domain/purchase.ts';
import { licenseKeyBytes, licenseKeyFrom } from '../../domain/license-key.ts';
import { changeLicense, type License } from '../../domain/license.ts';
import { done, refuse, refuseParameters, type Result } from '../../domain/problem.ts';
import type { Context } from '../ports.ts';
import type { Transaction } from '../tables.ts';

/** A purchase and the license that came with it. */
export type PurchaseWithLicense = { purchase: Purchase; license: License };

export type NewPurchase = {
  productKey: string;
  buyerEmail: string;
  /** Null: one is made. Already in its stored form. */
  licenseKey: string | null;
};

/** Records a purchase and issues its license key. */
export function addPurchase(
  transaction: Transaction,
  command: NewPurchase,
  { now, random }: Context,
): Result<PurchaseWithLicense> {
  const { productKey, buyerEmail } = command;
  if (transaction.products.get(productKey) === null) {
    const detail = 'There is no such product.';
    return refuseParameters([{ parameter: 'product_key', code: 'product_not_found', detail }]);
  }
  const licenseKey = command.licenseKey ?? licenseKeyFrom(random.bytes(licenseKeyBytes));
  if (transaction.licenses.get(licenseKey) !== null) {
    return refuse('license_key_taken', 'There already is a license with this key.');
  }
  const license = { licenseKey, productKey, buyerEmail, uses: 0, enabled: true, createdAt: now };
  const purchase = { purchaseId: random.uuid(now), licenseKey, createdAt: now, refundedAt: null };
  transaction.licenses.put(license);
  transaction.purchases.put(purchase);
  return done({ purchase, license });
}

/** Refunds a purchase, which disables its license key (specification 3.1). A second refund changes nothing. */
export function refundPurchase(
  transaction: Transaction,
  { purchaseId }: { purchaseId: string },
  { now }: Context,
): Result<PurchaseWithLicense> {
  const purchase = transaction.purchases.get(purchaseId);
  const license = purchase === null ? null : transaction.licenses.get(purchase.licenseKey);
  if (purchase === null || license === null) {
    return refuse('purchase_not_found', 'There is no such purchase.');
  }
  if (purchase.refundedAt !== null) return done({ purchase, license });
  const refunded = { purchase: { ...purchase, refundedAt: now }, license: changeLicense(license, 'refund') };
  transaction.purchases.put(refunded.purchase);
  transaction.licenses.put(refunded.license);
  return done(refunded);
}
