import type { DatabaseSync } from 'node:sqlite';
import {
  foldCouponCode,
  type Coupon,
  type CouponDiscount,
  type CouponScope,
  type CouponTerms,
} from '../domain/coupon.ts';
import type { CouponReads, CouponTable } from '../service/tables.ts';
import { prepareChange, prepareCount, prepareQuery } from './statements.ts';

type ScopeColumns =
  | { scope: 'single'; productKey: string; collectionId: null }
  | { scope: 'multi'; productKey: null; collectionId: null }
  | { scope: 'collection'; productKey: null; collectionId: string };
type DiscountColumns = { percentOff: number; amountOff: null } | { percentOff: null; amountOff: number };
type Row = Omit<Coupon, 'scope' | 'discount'> & ScopeColumns & DiscountColumns;

const select = `SELECT id, code, scope, product_key AS productKey, collection_id AS collectionId,
  percent_off AS percentOff, amount_off AS amountOff, start_at AS startAt, end_at AS endAt,
  minimum_purchase_amount AS minimumPurchaseAmount, usage_limit AS usageLimit, notes FROM coupon`;

/** Prepares the reads of an account's coupons. */
export function couponReads(database: DatabaseSync): CouponReads {
  const get = prepareQuery(database, `${select} WHERE account_id = ? AND id = ?`, fromRow);
  const byCode = prepareQuery(database, `${select} WHERE account_id = ? AND folded_code = ?`, fromRow);
  const list = prepareQuery(database, `${select} WHERE account_id = ? ORDER BY id LIMIT ? OFFSET ?`, fromRow);
  const count = prepareCount(database, 'SELECT count(*) AS count FROM coupon WHERE account_id = ?');
  return {
    get: (accountId, id) => get.first(accountId, id),
    byCode: (accountId, code) => byCode.first(accountId, foldCouponCode(code)),
    list: (accountId, { limit, offset }) => list.all(accountId, limit, offset),
    count: (accountId) => count(accountId),
  };
}

/** Prepares the table of coupons. */
export function couponTable(database: DatabaseSync): CouponTable {
  const add = prepareChange(
    database,
    `INSERT INTO coupon (account_id, code, folded_code, scope, product_key, collection_id, percent_off,
       amount_off, start_at, end_at, minimum_purchase_amount, usage_limit, notes)
     VALUES (:accountId, :code, :foldedCode, :scope, :productKey, :collectionId, :percentOff,
       :amountOff, :startAt, :endAt, :minimumPurchaseAmount, :usageLimit, :notes)`,
  );
  return {
    ...couponReads(database),
    add(accountId, terms) {
      const { rowId: id } = add({ accountId, foldedCode: foldCouponCode(terms.code), ...toColumns(terms) });
      return { ...terms, id };
    },
  };
}

function fromRow(row: Row): Coupon {
  const { id, code, startAt, endAt, minimumPurchaseAmount, usageLimit, notes } = row;
  const scope = scopeFrom(row);
  const discount = discountFrom(row);
  return { id, code, scope, discount, startAt, endAt, minimumPurchaseAmount, usageLimit, notes };
}

function scopeFrom(row: ScopeColumns): CouponScope {
  switch (row.scope) {
    case 'single':
      return { type: 'single', productKey: row.productKey };
    case 'multi':
      return { type: 'multi' };
    case 'collection':
      return { type: 'collection', collectionId: row.collectionId };
    default:
      return row satisfies never;
  }
}

function discountFrom(row: DiscountColumns): CouponDiscount {
  if (row.percentOff !== null) return { type: 'percent', percentOff: row.percentOff };
  return { type: 'amount', amountOff: row.amountOff };
}

function toColumns(terms: CouponTerms): Omit<Row, 'id'> {
  const { scope, discount, code, startAt, endAt, minimumPurchaseAmount, usageLimit, notes } = terms;
  return {
    code,
    ...scopeColumns(scope),
    ...discountColumns(discount),
    startAt,
    endAt,
    minimumPurchaseAmount,
    usageLimit,
    notes,
  };
}

function scopeColumns(scope: CouponScope): ScopeColumns {
  switch (scope.type) {
    case 'single':
      return { scope: 'single', productKey: scope.productKey, collectionId: null };
    case 'multi':
      return { scope: 'multi', productKey: null, collectionId: null };
    case 'collection':
      return { scope: 'collection', productKey: null, collectionId: scope.collectionId };
    default:
      return scope satisfies never;
  }
}

function discountColumns(discount: CouponDiscount): DiscountColumns {
  return discount.type === 'percent'
    ? { percentOff: discount.percentOff, amountOff: null }
    : { percentOff: null, amountOff: discount.amountOff };
}
