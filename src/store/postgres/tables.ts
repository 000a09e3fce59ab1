import type { AuthorityReader, AuthorityTransaction } from '../../service/tables.ts';
import type { Source, WritingSource } from './statements.ts';
import {
  accountReads,
  accountTable,
  collectionReads,
  collectionTable,
  productReads,
  productTable,
} from './tables/account.ts';
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
  return {
    accounts: accountReads(source),
    products: productReads(source),
    collections: collectionReads(source),
    purchases: purchaseReads(source),
    licenses: licenseReads(source),
    coupons: couponReads(source),
    redemptions: redemptionReads(source),
    tokens: tokenReads(source),
    idempotency: idempotencyReads(source),
    settings: settingReads(source),
    audit: auditReads(source),
    history: historyReads(source),
    oldCredentials: oldCredentialReads(source),
  };
}

/** Only the writer may pass these tables to use cases. */
export function prepareTransaction(source: WritingSource): AuthorityTransaction {
  return {
    accounts: accountTable(source),
    products: productTable(source),
    collections: collectionTable(source),
    purchases: purchaseTable(source),
    licenses: licenseTable(source),
    coupons: couponTable(source),
    redemptions: redemptionTable(source),
    tokens: tokenTable(source),
    idempotency: idempotencyTable(source),
    settings: settingTable(source),
    audit: auditTable(source),
    history: historyTable(source),
    oldCredentials: oldCredentialTable(source),
  };
}
