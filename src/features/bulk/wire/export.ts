import { stringify } from 'csv-stringify/sync';
import type { Coupon } from '../../../domain/checkout/coupon.ts';
import { formatDatetime } from '../../../domain/time.ts';
import type { License } from '../../../domain/license.ts';
import type { PurchaseWithLicense } from '../../../domain/catalogue.ts';
import type { ExportFilter, AuthorityReader } from '../../../service/tables.ts';
import { serializeCoupon, type CouponObject } from '../../../wire/coupon.ts';
import { withGuard } from '../../../wire/csv.ts';
import { isEmptyCell } from './import.ts';
import { forgottenBuyer } from './import-rows.ts';
import { importable } from './mapping/importable.ts';

type Cell = string | number | boolean | null;

/** The columns of an export, which an import reads as well, and a function that writes a row. */
type ExportShape<Item> = { columns: readonly string[]; row: (item: Item) => Record<string, Cell> };

/** Which page of an export to read: the filter, and the last key of the page before; null for the first page. */
export type ExportOrder =
  | { noun: 'licenses' | 'purchases'; filter: ExportFilter; after: string | null }
  | { noun: 'coupons'; accountId: string; after: number | null };

/** A page as CSV, and its last key, after which the next page begins; null for the last page. */
export type ExportPage = { csv: string; last: string | number | null };

declare module '../../../service/long-read.ts' {
  interface LongReads {
    exportPage: { asked: ExportOrder; read: ExportPage };
  }
}

/** The maximum number of rows in memory. */
const pageLength = 500;

/** Without `quoted_match`, only the whole record delimiter would be quoted, not a single CR or LF. */
const csvOptions = {
  record_delimiter: '\r\n',
  quoted_match: /[\r\n]/,
  cast: { boolean: String, string: withGuard },
};

/** Reads a page of an export and writes it as CSV (RFC 4180), so that `readCsv` reads the same values. */
export async function exportPage(
  reader: Pick<AuthorityReader, 'licenses' | 'purchases' | 'coupons'>,
  order: ExportOrder,
): Promise<ExportPage> {
  const { noun, after } = order;
  switch (noun) {
    case 'licenses': {
      const licenses = await reader.licenses.after(order.filter, after ?? '', pageLength);
      return pageOf(order, licenses, licenseExport, ({ licenseKey }) => licenseKey);
    }
    case 'purchases': {
      const purchases = await reader.purchases.after(order.filter, after ?? '', pageLength);
      return pageOf(order, purchases, purchaseExport, ({ purchase }) => purchase.purchaseId);
    }
    case 'coupons': {
      const coupons = await reader.coupons.after(order.accountId, after ?? 0, pageLength);
      return pageOf(order, coupons, couponExport, ({ id }) => id);
    }
    default:
      return order satisfies never;
  }
}

/** The first page begins with the header. */
function pageOf<Item>(
  { after }: ExportOrder,
  items: readonly Item[],
  { columns, row }: ExportShape<Item>,
  keyOf: (item: Item) => string | number,
): ExportPage {
  const head = after === null ? stringify([[...columns]], csvOptions) : '';
  const last = items.length < pageLength ? undefined : items.at(-1);
  return {
    csv: head + stringify(items.map(row), { ...csvOptions, columns: [...columns] }),
    last: last === undefined ? null : keyOf(last),
  };
}

const licenseExport: ExportShape<License> = {
  columns: [
    'license_key',
    'product_key',
    'buyer_email',
    'uses',
    'enabled',
    'date',
    'replaced_by',
    ...Object.keys(termCells({})),
  ],
  row: licenseRow,
};

function termCells({
  expiresAt = null,
  usesLimit = null,
  terms,
}: Pick<License, 'expiresAt' | 'usesLimit' | 'terms'>) {
  const { entitlements, metadata, seats, leaseHoldMs, leaseTermMs, leaseRefreshMs } = terms ?? {};
  const inSeconds = (ms: number | undefined): number | null => (ms === undefined ? null : ms / 1000);
  return {
    expires_at: expiresAt === null ? null : formatDatetime(expiresAt),
    uses_limit: usesLimit,
    entitlements: entitlements === undefined ? null : wordsCell(entitlements),
    metadata: metadata === undefined ? null : JSON.stringify(metadata),
    seats: seats ?? null,
    lease_hold_s: inSeconds(leaseHoldMs),
    lease_term_s: inSeconds(leaseTermMs),
    lease_refresh_s: inSeconds(leaseRefreshMs),
  };
}

/** An import must not take a word such as `NULL` for an empty cell. */
function wordsCell(words: readonly string[]): string {
  const cell = words.join(' ');
  return isEmptyCell(cell) ? `${cell},` : cell;
}

function licenseRow({
  licenseKey,
  productKey,
  buyerEmail,
  uses,
  enabled,
  createdAt,
  replacedBy,
  ...license
}: License) {
  return {
    license_key: licenseKey,
    product_key: productKey,
    buyer_email: buyerEmail || forgottenBuyer,
    uses,
    enabled,
    date: formatDatetime(createdAt),
    replaced_by: replacedBy ?? null,
    ...termCells(license),
  };
}

const purchaseExport: ExportShape<PurchaseWithLicense> = {
  columns: ['purchase_id', ...licenseExport.columns, 'refunded_at'],
  row: ({ purchase, license }) => ({
    purchase_id: purchase.purchaseId,
    ...licenseRow(license),
    refunded_at: purchase.refundedAt === null ? null : formatDatetime(purchase.refundedAt),
  }),
};

const { required, optional } = importable.coupon;
const couponColumns: readonly (keyof CouponObject)[] = [
  'id',
  ...required,
  ...optional.filter((name) => name !== 'id'),
];

const couponExport: ExportShape<Coupon> = { columns: couponColumns, row: serializeCoupon };
