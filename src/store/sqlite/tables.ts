import type { DatabaseSync } from 'node:sqlite';
import type { Attempt, Reader, Transaction } from '../../service/tables.ts';
import { prepareOn } from './statements.ts';
import { collectChanges, collectEvents, collectTrace, trackChanges } from '../changes.ts';
import * as chain from './tables/chain.ts';
import * as catalogue from './tables/catalogue.ts';
import * as access from './tables/access.ts';
import * as activation from './tables/activation.ts';
import * as heldLease from './tables/held-lease.ts';
import * as coupon from './tables/coupon.ts';
import * as license from './tables/license.ts';
import * as mirror from './tables/mirrored-coupon.ts';
import * as snapshot from './tables/license-snapshot.ts';
import * as operation from './tables/operation.ts';
import * as follow from './tables/follow.ts';
import * as purchase from './tables/purchase.ts';
import * as series from './tables/series.ts';
import * as sync from './tables/sync.ts';
import * as webhook from './tables/webhook.ts';

export function prepareReader(database: DatabaseSync): Reader {
  const prepare = prepareOn(database);
  return {
    accounts: catalogue.accountReads(prepare),
    products: catalogue.productReads(prepare),
    collections: catalogue.collectionReads(prepare),
    purchases: purchase.purchaseReads(prepare),
    licenses: license.licenseReads(prepare),
    coupons: coupon.couponReads(prepare),
    mirror: mirror.mirrorReads(prepare),
    redemptions: coupon.redemptionReads(prepare),
    tokens: access.tokenReads(prepare),
    snapshots: snapshot.snapshotReads(prepare),
    preload: snapshot.preloadReads(prepare),
    operations: operation.operationReads(prepare),
    follows: follow.followReads(prepare),
    idempotency: access.idempotencyReads(prepare),
    settings: access.settingReads(prepare),
    audit: access.auditReads(prepare),
    history: license.historyReads(prepare),
    oldCredentials: access.oldCredentialReads(prepare),
    series: series.seriesReads(prepare),
    activations: activation.activationReads(prepare),
    webhooks: webhook.webhookReads(prepare),
    heldLeases: heldLease.heldLeaseReads(prepare),
    sync: sync.syncReads(prepare),
    chain: chain.chainReads(prepare),
  };
}

/** Only the committer may pass these tables to use cases. */
export function prepareTransaction(database: DatabaseSync): Transaction {
  const prepare = prepareOn(database);
  const changes = collectChanges();
  const history = license.historyTable(prepare);
  const tables: Transaction = {
    accounts: catalogue.accountTable(prepare),
    products: catalogue.productTable(prepare),
    collections: catalogue.collectionTable(prepare),
    purchases: purchase.purchaseTable(prepare),
    licenses: license.licenseTable(prepare, history),
    coupons: coupon.couponTable(prepare),
    mirror: mirror.mirrorTable(prepare),
    redemptions: coupon.redemptionTable(prepare),
    tokens: access.tokenTable(prepare),
    snapshots: snapshot.snapshotTable(prepare),
    preload: snapshot.preloadTable(prepare),
    operations: operation.operationTable(prepare),
    follows: follow.followTable(prepare),
    trace: collectTrace(),
    changes,
    idempotency: access.idempotencyTable(prepare),
    settings: access.settingTable(prepare),
    audit: access.auditTable(prepare),
    history,
    oldCredentials: access.oldCredentialTable(prepare),
    series: series.seriesTable(prepare),
    activations: activation.activationTable(prepare),
    webhooks: webhook.webhookTable(prepare),
    events: collectEvents(),
    heldLeases: heldLease.heldLeaseTable(prepare),
    sync: sync.syncTable(prepare),
    chain: chain.chainTable(prepare),
    attempt: prepareAttempt(database),
  };
  return trackChanges(tables, changes);
}

function prepareAttempt(database: DatabaseSync): Attempt {
  const { change } = prepareOn(database);
  const [open, undo, close] = ['SAVEPOINT attempt', 'ROLLBACK TO attempt', 'RELEASE attempt'].map(change);
  return async (work) => {
    open?.({});
    // If it throws, the whole transaction is rolled back.
    const result = await work();
    if (!result.ok) undo?.({});
    close?.({});
    return result;
  };
}
