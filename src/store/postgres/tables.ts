import type { AuthorityReader, AuthorityTransaction } from '../../service/tables.ts';
import { prepareOn, prepareWritesOn, type Source, type WritingSource } from './statements.ts';
import {
  accountReads,
  accountTable,
  collectionReads,
  collectionTable,
  productReads,
  productTable,
} from './tables/catalogue.ts';
import {
  auditReads,
  auditTable,
  idempotencyReads,
  idempotencyTable,
  oldCredentialReads,
  oldCredentialTable,
  tokenReads,
  tokenTable,
  settingReads,
  settingTable,
} from './tables/access.ts';
import { couponReads, couponTable, redemptionReads, redemptionTable } from './tables/coupon.ts';
import { historyReads, historyTable, licenseReads, licenseTable } from './tables/license.ts';
import { purchaseReads, purchaseTable } from './tables/purchase.ts';

export function prepareReader(source: Source): AuthorityReader {
  const prepare = prepareOn(source);
  return {
    accounts: accountReads(prepare),
    products: productReads(prepare),
    collections: collectionReads(prepare),
    purchases: purchaseReads(prepare),
    licenses: licenseReads(prepare),
    coupons: couponReads(prepare),
    redemptions: redemptionReads(prepare),
    tokens: tokenReads(prepare),
    idempotency: idempotencyReads(prepare),
    settings: settingReads(prepare),
    audit: auditReads(prepare),
    history: historyReads(prepare),
    oldCredentials: oldCredentialReads(prepare),
  };
}

/** Only the writer may pass these tables to use cases. */
export function prepareTransaction(source: WritingSource): AuthorityTransaction {
  const prepare = prepareWritesOn(source);
  return {
    accounts: accountTable(prepare),
    products: productTable(prepare),
    collections: collectionTable(prepare),
    purchases: purchaseTable(prepare),
    licenses: licenseTable(prepare),
    coupons: couponTable(prepare),
    redemptions: redemptionTable(prepare),
    tokens: tokenTable(prepare),
    idempotency: idempotencyTable(prepare),
    settings: settingTable(prepare),
    audit: auditTable(prepare),
    history: historyTable(prepare),
    oldCredentials: oldCredentialTable(prepare),
  };
}
