import { Readable } from 'node:stream';
import { stringify } from 'csv-stringify/sync';
import type { Coupon } from '../../../domain/checkout/coupon.ts';
import { formatDatetime } from '../../../domain/datetime.ts';
import type { License } from '../../../domain/license.ts';
import type { PurchaseWithLicense } from '../../../domain/purchase.ts';
import { presentCoupon, type CouponObject } from '../coupon.ts';

type Cell = string | number | boolean | null;

/** What is exported of a noun: its columns, as an import reads them, and a row. */
export type ExportShape<Item> = { columns: readonly string[]; row: (item: Item) => Record<string, Cell> };

/**
 * Makes CSV (RFC 4180) of pages of items, such that `readCsv` reads the same; a page is asked for when the one
 * before it was sent.
 */
export function csvOf<Item>(pages: AsyncIterable<readonly Item[]>, shape: ExportShape<Item>): Readable {
  return Readable.from(csvLines(pages, shape), { objectMode: false });
}

async function* csvLines<Item>(
  pages: AsyncIterable<readonly Item[]>,
  { columns, row }: ExportShape<Item>,
): AsyncGenerator<string> {
  // Without `quoted_match` only the record delimiter itself would be quoted, not the halves of it.
  const options = { record_delimiter: '\r\n', quoted_match: /[\r\n]/, cast: { boolean: String } };
  yield stringify([[...columns]], options);
  for await (const items of pages) yield stringify(items.map(row), { ...options, columns: [...columns] });
}

export const licenseExport: ExportShape<License> = {
  columns: ['license_key', 'product_key', 'buyer_email', 'uses', 'enabled', 'date'],
  row: licenseRow,
};

function licenseRow({ licenseKey, productKey, buyerEmail, uses, enabled, createdAt }: License) {
  return {
    license_key: licenseKey,
    product_key: productKey,
    buyer_email: buyerEmail,
    uses,
    enabled,
    date: formatDatetime(createdAt),
  };
}

export const purchaseExport: ExportShape<PurchaseWithLicense> = {
  columns: ['purchase_id', ...licenseExport.columns, 'refunded_at'],
  row: ({ purchase, license }) => ({
    purchase_id: purchase.purchaseId,
    ...licenseRow(license),
    refunded_at: purchase.refundedAt === null ? null : formatDatetime(purchase.refundedAt),
  }),
};

const couponColumns: readonly (keyof CouponObject)[] = [
  'id',
  'code',
  'coupon_type',
  'percent_off',
  'amount_off',
  'start_date',
  'end_date',
  'product_key',
  'collection_id',
  'minimum_purchase_amount',
  'usage_limit',
  'notes',
];

export const couponExport: ExportShape<Coupon> = { columns: couponColumns, row: presentCoupon };
