import type { DatabaseSync } from 'node:sqlite';
import type { Reader, Transaction } from '../../service/tables.ts';
import { prepareOn } from './statements.ts';
import { collectChanges, trackChanges } from '../changes.ts';
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
import { mirrorReads, mirrorTable } from './tables/mirrored-coupon.ts';
import { snapshotReads, snapshotTable, preloadReads, preloadTable } from './tables/license-snapshot.ts';
import { operationReads, operationTable } from './tables/operation.ts';
import { purchaseReads, purchaseTable } from './tables/purchase.ts';
import type { Traced } from '../../domain/outbox/operation.ts';
import type { Trace } from '../../service/outbox/tables.ts';

export function prepareReader(database: DatabaseSync): Reader {
  const prepare = prepareOn(database);
  return {
    accounts: accountReads(prepare),
    products: productReads(prepare),
    collections: collectionReads(prepare),
    purchases: purchaseReads(prepare),
    licenses: licenseReads(prepare),
    coupons: couponReads(prepare),
    mirror: mirrorReads(prepare),
    redemptions: redemptionReads(prepare),
    tokens: tokenReads(prepare),
    snapshots: snapshotReads(prepare),
    preload: preloadReads(prepare),
    operations: operationReads(prepare),
    idempotency: idempotencyReads(prepare),
    settings: settingReads(prepare),
    audit: auditReads(prepare),
    history: historyReads(prepare),
    oldCredentials: oldCredentialReads(prepare),
  };
}

/** Only the committer may pass these tables to use cases. */
export function prepareTransaction(database: DatabaseSync): Transaction {
  const prepare = prepareOn(database);
  const changes = collectChanges();
  const history = historyTable(prepare);
  const tables: Transaction = {
    accounts: accountTable(prepare),
    products: productTable(prepare),
    collections: collectionTable(prepare),
    purchases: purchaseTable(prepare),
    licenses: licenseTable(prepare, history),
    coupons: couponTable(prepare),
    mirror: mirrorTable(prepare),
    redemptions: redemptionTable(prepare),
    tokens: tokenTable(prepare),
    snapshots: snapshotTable(prepare),
    preload: preloadTable(prepare),
    operations: operationTable(prepare),
    trace: collectTrace(),
    changes,
    idempotency: idempotencyTable(prepare),
    settings: settingTable(prepare),
    audit: auditTable(prepare),
    history,
    oldCredentials: oldCredentialTable(prepare),
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
