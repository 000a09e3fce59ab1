import type { DatabaseSync } from 'node:sqlite';
import type { Reader, Transaction } from '../../service/tables.ts';
import { collectChanges, trackChanges } from '../changes.ts';
import { accountReads, accountTable } from './tables/account.ts';
import { auditReads, auditTable } from './tables/access/audit.ts';
import { collectionReads, collectionTable } from './tables/collection.ts';
import { couponReads, couponTable } from './tables/coupon.ts';
import { historyReads, historyTable } from './tables/access/history.ts';
import { idempotencyReads, idempotencyTable } from './tables/access/idempotency.ts';
import { licenseReads, licenseTable } from './tables/license.ts';
import { mirrorReads, mirrorTable } from './tables/agent/mirror.ts';
import { snapshotReads, snapshotTable } from './tables/agent/license-snapshot.ts';
import { oldCredentialReads, oldCredentialTable, tokenReads, tokenTable } from './tables/access/token.ts';
import { operationReads, operationTable } from './tables/outbox/operation.ts';
import { preloadReads, preloadTable } from './tables/agent/preload.ts';
import { productReads, productTable } from './tables/product.ts';
import { purchaseReads, purchaseTable } from './tables/purchase.ts';
import { redemptionReads, redemptionTable } from './tables/redemption.ts';
import { settingReads, settingTable } from './tables/setting.ts';
import type { Traced } from '../../domain/outbox/operation.ts';
import type { Trace } from '../../service/outbox/tables.ts';

export function prepareReader(database: DatabaseSync): Reader {
  return {
    accounts: accountReads(database),
    products: productReads(database),
    collections: collectionReads(database),
    purchases: purchaseReads(database),
    licenses: licenseReads(database),
    coupons: couponReads(database),
    mirror: mirrorReads(database),
    redemptions: redemptionReads(database),
    tokens: tokenReads(database),
    snapshots: snapshotReads(database),
    preload: preloadReads(database),
    operations: operationReads(database),
    idempotency: idempotencyReads(database),
    settings: settingReads(database),
    audit: auditReads(database),
    history: historyReads(database),
    oldCredentials: oldCredentialReads(database),
  };
}

/** Only the committer may pass these tables to use cases. */
export function prepareTransaction(database: DatabaseSync): Transaction {
  const changes = collectChanges();
  const history = historyTable(database);
  const tables: Transaction = {
    accounts: accountTable(database),
    products: productTable(database),
    collections: collectionTable(database),
    purchases: purchaseTable(database),
    licenses: licenseTable(database, history),
    coupons: couponTable(database),
    mirror: mirrorTable(database),
    redemptions: redemptionTable(database),
    tokens: tokenTable(database),
    snapshots: snapshotTable(database),
    preload: preloadTable(database),
    operations: operationTable(database),
    trace: collectTrace(),
    changes,
    idempotency: idempotencyTable(database),
    settings: settingTable(database),
    audit: auditTable(database),
    history,
    oldCredentials: oldCredentialTable(database),
  };
  return trackChanges(tables, changes);
}

/** Collects events of operations for the committer. */
function collectTrace(): Trace {
  let collected: Traced[] = [];
  return {
    add(traced) {
      collected.push(traced);
    },
    take() {
      const taken = collected;
      collected = [];
      return taken;
    },
  };
}
