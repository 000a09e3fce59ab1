import type { Attempt, AuthorityReader, AuthorityTransaction } from '../../service/tables.ts';
import { collectEvents } from '../changes.ts';
import { prepareOn, prepareWritesOn, statementOf, type Source, type WritingSource } from './statements.ts';
import * as catalogue from './tables/catalogue.ts';
import * as access from './tables/access.ts';
import * as activation from './tables/activation.ts';
import * as coupon from './tables/coupon.ts';
import * as license from './tables/license.ts';
import * as purchase from './tables/purchase.ts';
import * as series from './tables/series.ts';
import * as sync from './tables/sync.ts';
import * as webhook from './tables/webhook.ts';

export function prepareReader(source: Source): AuthorityReader {
  const prepare = prepareOn(source);
  return {
    accounts: catalogue.accountReads(prepare),
    products: catalogue.productReads(prepare),
    collections: catalogue.collectionReads(prepare),
    purchases: purchase.purchaseReads(prepare),
    licenses: license.licenseReads(prepare),
    coupons: coupon.couponReads(prepare),
    redemptions: coupon.redemptionReads(prepare),
    tokens: access.tokenReads(prepare),
    idempotency: access.idempotencyReads(prepare),
    settings: access.settingReads(prepare),
    audit: access.auditReads(prepare),
    history: license.historyReads(prepare),
    oldCredentials: access.oldCredentialReads(prepare),
    series: series.seriesReads(prepare),
    activations: activation.activationReads(prepare),
    webhooks: webhook.webhookReads(prepare),
    sync: sync.syncReads(prepare),
  };
}

/** Only the writer may pass these tables to use cases. */
export function prepareTransaction(source: WritingSource): AuthorityTransaction {
  const prepare = prepareWritesOn(source);
  return {
    accounts: catalogue.accountTable(prepare),
    products: catalogue.productTable(prepare),
    collections: catalogue.collectionTable(prepare),
    purchases: purchase.purchaseTable(prepare),
    licenses: license.licenseTable(prepare),
    coupons: coupon.couponTable(prepare),
    redemptions: coupon.redemptionTable(prepare),
    tokens: access.tokenTable(prepare),
    idempotency: access.idempotencyTable(prepare),
    settings: access.settingTable(prepare),
    audit: access.auditTable(prepare),
    history: license.historyTable(prepare),
    oldCredentials: access.oldCredentialTable(prepare),
    series: series.seriesTable(prepare),
    activations: activation.activationTable(prepare),
    webhooks: webhook.webhookTable(prepare),
    events: collectEvents(),
    sync: sync.syncTable(prepare),
    attempt: attemptOn(source),
  };
}

const savepoint = {
  open: statementOf('SAVEPOINT attempt'),
  undo: statementOf('ROLLBACK TO SAVEPOINT attempt'),
  close: statementOf('RELEASE SAVEPOINT attempt'),
};

function attemptOn(source: WritingSource): Attempt {
  return async (work) => {
    source.send(savepoint.open, []);
    // If it throws, the whole transaction is rolled back.
    const result = await work();
    if (!result.ok) source.send(savepoint.undo, []);
    source.send(savepoint.close, []);
    return result;
  };
}
