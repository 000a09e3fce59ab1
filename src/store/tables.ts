import { features } from '../features.ts';
import type { AgentTablesOfFeatures, CoreReader, Reader, Transaction } from '../service/tables.ts';
import type { TableEffects, AllOn, FeatureTables } from './feature-tables.ts';
import type { Engine, Sql, WritingSql } from './sql.ts';
import * as access from './tables/access.ts';
import * as catalogue from './tables/catalogue.ts';
import * as coupon from './tables/coupon.ts';

declare module '../feature.ts' {
  interface Feature {
    readonly tables?: FeatureTables;
  }
}

/** The tables that features add to those of the core. */
type Added = Exclude<keyof Reader, keyof CoreReader | keyof AgentTablesOfFeatures>;
type AddedLocal = Extract<keyof Reader, keyof AgentTablesOfFeatures>;

const ofFeatures = features.map(({ tables }) => tables).filter((tables) => tables !== undefined);

/* The compiler cannot see that the features of the list have all the tables that features add to the types. */

function readsOfFeatures<E extends Engine>(sql: Sql<E>): AllOn<E, Pick<Reader, Added>> {
  const all = ofFeatures.flatMap(({ reads, byEngine }) => [
    reads?.(sql),
    byEngine?.[sql.engine].reads(sql as never),
  ]);
  return merged(all) as AllOn<E, Pick<Reader, Added>>;
}

function tablesOfFeatures<E extends Engine>(sql: WritingSql<E>): AllOn<E, Pick<Transaction, Added>> {
  const all = ofFeatures.flatMap(({ tables, byEngine }) => [
    tables?.(sql),
    byEngine?.[sql.engine].tables(sql as never),
  ]);
  return merged(all) as AllOn<E, Pick<Transaction, Added>>;
}

/** The tables of features that only an agent or a holder has. */
export function localReads(sql: Sql<'sqlite'>): Pick<Reader, AddedLocal> {
  return merged(ofFeatures.map(({ local }) => local?.reads(sql))) as Pick<Reader, AddedLocal>;
}

export function localTables(sql: WritingSql<'sqlite'>): Pick<Transaction, AddedLocal> {
  return merged(ofFeatures.map(({ local }) => local?.tables(sql))) as Pick<Transaction, AddedLocal>;
}

/** What calls of the tables of features invalidate. */
export function effectsOfFeatures(): TableEffects {
  return merged(ofFeatures.map(({ effects }) => effects));
}

function merged(parts: readonly (object | undefined)[]): object {
  return Object.assign({}, ...parts) as object;
}

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
    ...readsOfFeatures(sql),
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
    ...tablesOfFeatures(sql),
  };
}
