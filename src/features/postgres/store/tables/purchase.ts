import { maxFound } from '../../../../domain/search.ts';
import type { PurchaseFilter, PurchaseReads, PurchaseTable } from '../../../../service/tables.ts';
import type { Condition, On } from '../../../../store/sql.ts';
import {
  purchase,
  purchaseAndLicense,
  purchaseFrom,
  purchaseWrites,
} from '../../../../store/tables/catalogue.ts';
import type { PostgresSql, WritingPostgresSql } from '../statements.ts';
import { exported, found, ofBuyer } from './license.ts';

function conditionsOf(filter: PurchaseFilter): Condition[] {
  return [
    ['license.license_key = $1', filter.licenseKey],
    ofBuyer(filter.buyerEmail),
    ['purchase.created_at >= $1', filter.since],
    ['purchase.created_at <= $1', filter.until],
    ['(purchase.refunded_at IS NOT NULL) = $1', filter.refunded],
    ...found(filter.search),
    ...exported(filter),
  ];
}

export function purchaseReads(sql: PostgresSql): On<'postgres', PurchaseReads> {
  const joined = `latchkey.purchase
    JOIN latchkey.license ON license.license_key = purchase.license_key`;
  const id = 'purchase.purchase_id';
  const list = { select: purchaseAndLicense, from: joined, isLatestFirst: true };
  const listed = sql.list({ ...list, key: ['purchase.created_at', id] }, purchaseFrom);
  const searched = sql.planned.list({ ...list, key: ['purchase.created_at', id] }, purchaseFrom);
  // A key has few purchases. Without this, the planner would scan all purchases by date because of ORDER BY.
  const ofKey = sql.list({ ...list, key: ['purchase.created_at + 0', id] }, purchaseFrom);
  const all = sql.list({ select: purchaseAndLicense, from: joined, key: [id] }, purchaseFrom);
  return {
    get: sql.get(`SELECT ${purchase.list} FROM latchkey.purchase WHERE purchase_id = $1`),
    after: (filter, purchaseId, limit) =>
      all.list(exported(filter), { limit, offset: 0, cursor: [purchaseId] }),
    list(filter, page) {
      const lists = filter.licenseKey === undefined ? listed : ofKey;
      return (filter.search === undefined ? lists : searched).list(conditionsOf(filter), page);
    },
    count: (filter) =>
      filter.search === undefined
        ? listed.count(conditionsOf(filter))
        : searched.countUpTo(conditionsOf(filter), maxFound + 1),
  };
}

export function purchaseTable(sql: WritingPostgresSql): On<'postgres', PurchaseTable> {
  return { ...purchaseReads(sql), ...purchaseWrites(sql) };
}
