import type { Engine, Sql, WritingSql } from './sql.ts';
import * as access from './tables/access.ts';
import * as activation from '../features/leases/store/activation.ts';
import * as catalogue from './tables/catalogue.ts';
import * as coupon from './tables/coupon.ts';
import * as series from '../features/console/store/series.ts';
import * as webhook from '../features/webhooks/store/webhook.ts';

/** The reads of the tables that both engines have, with the same statements. */
export function sharedReads<E extends Engine>(sql: Sql<E>) {
  return {
    accounts: catalogue.accountReads(sql),
    products: catalogue.productReads(sql),
    collections: catalogue.collectionReads(sql),
    coupons: coupon.couponReads(sql),
    redemptions: coupon.redemptionReads(sql),
    tokens: access.tokenReads(sql),
    idempotency: access.idempotencyReads(sql),
    settings: access.settingReads(sql),
    audit: access.auditReads(sql),
    oldCredentials: access.oldCredentialReads(sql),
    series: series.seriesReads(sql),
    activations: activation.activationReads(sql),
    webhooks: webhook.webhookReads(sql),
  };
}

export function sharedTables<E extends Engine>(sql: WritingSql<E>) {
  return {
    accounts: catalogue.accountTable(sql),
    products: catalogue.productTable(sql),
    collections: catalogue.collectionTable(sql),
    coupons: coupon.couponTable(sql),
    redemptions: coupon.redemptionTable(sql),
    tokens: access.tokenTable(sql),
    idempotency: access.idempotencyTable(sql),
    settings: access.settingTable(sql),
    audit: access.auditTable(sql),
    oldCredentials: access.oldCredentialTable(sql),
    series: series.seriesTable(sql),
    activations: activation.activationTable(sql),
    webhooks: webhook.webhookTable(sql),
  };
}
