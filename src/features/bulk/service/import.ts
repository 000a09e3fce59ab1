import { done, failWith, type Result, unknownProduct, notFound } from '../../../domain/problem/problem.ts';
import { type License, issuedKeyFault } from '../../../domain/license.ts';
import { changedTerms, hasTerms, type TermsChange } from '../../../domain/terms.ts';
import type { Product, Purchase } from '../../../domain/catalogue.ts';
import type { Context } from '../../../service/ports.ts';
import type { AuthorityTransaction, Awaitable } from '../../../service/tables.ts';
import {
  type Coupon,
  type CouponTerms,
  foldCouponCode,
  isPlainCouponCode,
  malformedCode,
  codeTaken,
} from '../../../domain/checkout/coupon.ts';
import { couponScopeFaults } from '../../../service/authority/coupon.ts';
import { ownLeaseTermsFault } from '../../../service/authority/terms.ts';

/** The caller numbers the rows. `value`: the beginning of the wrong cell, if it is known and no license key. */
export type RejectedRow = { row: number; code: string; detail: string; value?: string };

export type ImportReport = { imported: number; unchanged: number; rejected: RejectedRow[] };

/** `rejected`: rows that could not be parsed. */
export type ImportRows<Row> = {
  rows: readonly Row[];
  rejected: readonly RejectedRow[];
  /** Import all rows or none. */
  isAtomic: boolean;
  /** Report the result, but write nothing. */
  isDryRun: boolean;
};

/** `unchanged`: the store already has the same content as the row. */
export type ImportedRow = 'imported' | 'unchanged' | { code: string; detail: string };

const maxConcurrentRows = 500;

type RowImport<Row> = {
  importOne: (row: Row) => Promise<ImportedRow>;
  /** Rows with a common identity are not imported concurrently, because the later row depends on the earlier row. */
  identitiesOf: (row: Row) => readonly string[];
};

/**
 * Imports the rows with the same result as one after the other. If one row of an atomic import is rejected, all rows
 * are refused. Independent rows are imported concurrently, which saves round trips to a database server. They are sorted
 * by identity, so that indexes are written page by page.
 */
export async function importEach<Row extends { row: number }>(
  { rows, rejected, isAtomic, isDryRun }: ImportRows<Row>,
  { importOne, identitiesOf }: RowImport<Row>,
): Promise<Result<ImportReport>> {
  const report: ImportReport = { imported: 0, unchanged: 0, rejected: [...rejected] };
  for (const batch of independentRows(rows, identitiesOf)) {
    const outcomes = await Promise.all(batch.map(async (row) => [row, await importOne(row)] as const));
    for (const [{ row }, outcome] of outcomes) {
      if (typeof outcome === 'string') report[outcome] += 1;
      else report.rejected.push({ row, ...outcome });
    }
  }
  report.rejected.sort((one, other) => one.row - other.row);
  if (isAtomic && report.rejected.length > 0) return refuseAll(report.rejected);
  return isDryRun ? { ...done(report), unchanged: true } : done(report);
}

/** Starts a new batch at each row that shares an identity with a row of the batch; sorts the batches and splits them. */
function* independentRows<Row>(
  rows: readonly Row[],
  identitiesOf: (row: Row) => readonly string[],
): Generator<readonly Row[]> {
  let batch: { row: Row; identities: readonly string[] }[] = [];
  let taken = new Set<string>();
  for (const row of rows) {
    const identities = identitiesOf(row);
    if (identities.some((identity) => taken.has(identity))) {
      yield* chunks(inOrder(batch), maxConcurrentRows);
      batch = [];
      taken = new Set();
    }
    batch.push({ row, identities });
    for (const identity of identities) taken.add(identity);
  }
  yield* chunks(inOrder(batch), maxConcurrentRows);
}

function inOrder<Row>(rows: { row: Row; identities: readonly string[] }[]): readonly Row[] {
  const first = ({ identities }: { identities: readonly string[] }): string => identities[0] ?? '';
  return rows.sort((one, other) => (first(one) < first(other) ? -1 : 1)).map(({ row }) => row);
}

function* chunks<Item>(items: readonly Item[], size: number): Generator<readonly Item[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size);
}

function refuseAll(rejected: readonly RejectedRow[]): Result<never> {
  const errors = rejected.map(({ row, code, detail }) => ({ parameter: `row ${row}`, code, detail }));
  return failWith('import_rejected', 'Nothing was imported, because some rows were rejected.', { errors });
}

/** Imported dates are in whole seconds. */
function secondOf(epochMs: number | null): number | null {
  return epochMs === null ? null : Math.floor(epochMs / 1000);
}

/** A license of another store; null: the file has no value. */
export type LicenseRow = {
  row: number;
  licenseKey: string;
  productKey: string;
  buyerEmail: string;
  uses: number | null;
  enabled: boolean | null;
  createdAt: number | null;
  /** The key that the license has instead of this one, which stays disabled. */
  replacedBy: string | null;
  /** Undefined: the file has no value. */
  terms: TermsChange;
};

type LicenseImport = ImportRows<LicenseRow> & {
  /** Accept only products of this account; null: any. */
  accountId: string | null;
};

type Tables = {
  products: Pick<AuthorityTransaction['products'], 'get'>;
  licenses: Pick<AuthorityTransaction['licenses'], 'get' | 'add'>;
};

/** Imports licenses from another store, with their dates, counts and states. An import can be repeated. */
export async function importLicenses(
  transaction: AuthorityTransaction,
  command: LicenseImport,
  { now }: Context,
): Promise<Result<ImportReport>> {
  const tables = importTables(transaction, command);
  return await importEach(command, {
    importOne: (row) => importLicense(tables, row, command.accountId, now),
    identitiesOf: ({ licenseKey }) => [licenseKey],
  });
}

/** A dry run keeps writes in memory, so that it finds duplicate keys. */
function importTables(
  { products, licenses }: Pick<AuthorityTransaction, 'products' | 'licenses'>,
  { isDryRun }: { isDryRun: boolean },
): Tables {
  const tables = { products: cached(products), licenses };
  if (!isDryRun) return tables;
  const added = new Map<string, License>();
  return {
    ...tables,
    licenses: {
      get: (licenseKey) => added.get(licenseKey) ?? licenses.get(licenseKey),
      add: async (license) => {
        const { licenseKey } = license;
        if (added.has(licenseKey) || (await licenses.get(licenseKey)) !== null) return false;
        added.set(licenseKey, license);
        return true;
      },
    },
  };
}

/** Reads each product once, also for concurrent rows: thousands of rows have the same few products. */
function cached(products: Tables['products']): Tables['products'] {
  const cache = new Map<string, Awaitable<Product | null>>();
  return {
    get: (productKey) => {
      if (!cache.has(productKey)) cache.set(productKey, products.get(productKey));
      return cache.get(productKey) ?? null;
    },
  };
}

async function importLicense(
  { products, licenses }: Tables,
  row: LicenseRow,
  accountId: string | null,
  now: number,
): Promise<ImportedRow> {
  const product = await products.get(row.productKey);
  if (product === null || (accountId !== null && product.accountId !== accountId)) {
    return { code: unknownProduct.code, detail: unknownProduct.detail };
  }
  const fault = issuedKeyFault(row.licenseKey);
  // An earlier version may have stored a license with an unusual key.
  if (fault !== null && (await licenses.get(row.licenseKey)) === null)
    return { code: fault.code, detail: fault.detail };
  const leaseFault = ownLeaseTermsFault(product, row.terms)?.problem.errors?.[0];
  if (leaseFault !== undefined) return { code: leaseFault.code, detail: leaseFault.detail };
  const { expiryGraceMs } = product.licenseTerms;
  const terms = changedTerms({}, row.terms, expiryGraceMs);
  if (await licenses.add({ ...licenseOf(row, now), ...(hasTerms(terms) && terms) })) return 'imported';
  const stored = await licenses.get(row.licenseKey);
  if (stored !== null && isSameLicense(row, stored) && hasSameTerms(row.terms, stored)) return 'unchanged';
  return { code: 'license_key_taken', detail: 'There already is another license with this key.' };
}

function licenseOf(row: LicenseRow, now: number): License {
  const { licenseKey, productKey, buyerEmail, uses, enabled, createdAt, replacedBy } = row;
  return {
    licenseKey,
    productKey,
    buyerEmail,
    uses: uses ?? 0,
    enabled: enabled ?? true,
    createdAt: createdAt ?? now,
    ...(replacedBy !== null && { replacedBy }),
  };
}

/** Compares the values that the row has. */
function isSameLicense(row: LicenseRow, license: License): boolean {
  return (
    row.productKey === license.productKey &&
    row.buyerEmail === license.buyerEmail &&
    (row.uses ?? license.uses) === license.uses &&
    (row.enabled ?? license.enabled) === license.enabled &&
    (row.replacedBy ?? license.replacedBy) === license.replacedBy &&
    secondOf(row.createdAt ?? license.createdAt) === secondOf(license.createdAt)
  );
}

/** Whether the terms that a row has are those of a license. */
function hasSameTerms(sent: TermsChange, license: License): boolean {
  return JSON.stringify(changedTerms(license, sent, 0)) === JSON.stringify(changedTerms(license, {}, 0));
}

/**
 * A purchase of another store, with its license; null: the file has no value. `isRefunded`: with `refundedAt` null, the
 * purchase was refunded at an unknown time.
 */
export type PurchaseRow = LicenseRow & {
  purchaseId: string | null;
  refundedAt: number | null;
  isRefunded: boolean;
};

type PurchaseImport = ImportRows<PurchaseRow> & Pick<LicenseImport, 'accountId'>;

/** Imports purchases and their licenses. */
export async function importPurchases(
  transaction: AuthorityTransaction,
  command: PurchaseImport,
  { now, random }: Context,
): Promise<Result<ImportReport>> {
  const tables = importTables(transaction, command);
  const purchases = command.isDryRun ? dryRunPurchases(purchasesIn(transaction)) : purchasesIn(transaction);
  const importOne = async (row: PurchaseRow): Promise<ImportedRow> => {
    const { purchaseId, licenseKey } = row;
    const stored =
      (await purchases.ofKey(licenseKey)) ?? (purchaseId === null ? null : await purchases.get(purchaseId));
    if (stored !== null && !isSamePurchase(row, stored)) return purchaseTaken;
    const license = await importLicense(tables, row, command.accountId, now);
    if (typeof license === 'object' || stored !== null) return license;
    // If the license was stored before, it has the date of the sale.
    const known = license === 'unchanged' ? await tables.licenses.get(licenseKey) : null;
    const createdAt = row.createdAt ?? known?.createdAt ?? now;
    const refundedAt = row.refundedAt ?? (row.isRefunded ? now : null);
    await purchases.add({ purchaseId: purchaseId ?? random.uuid(now), licenseKey, createdAt, refundedAt });
    return 'imported';
  };
  return await importEach(command, { importOne, identitiesOf: purchaseIdentities });
}

type Purchases = {
  ofKey(licenseKey: string): Promise<Purchase | null>;
  get(purchaseId: string): Awaitable<Purchase | null>;
  add(purchase: Purchase): Awaitable<void>;
};

function purchasesIn({ purchases }: AuthorityTransaction): Purchases {
  return {
    async ofKey(licenseKey) {
      const [sold] = await purchases.list({ licenseKey }, { limit: 1, offset: 0 });
      return sold?.purchase ?? null;
    },
    get: (purchaseId) => purchases.get(purchaseId),
    add: (purchase) => purchases.add(purchase),
  };
}

/** Keeps writes in memory, so that a dry run finds a duplicate key or id. */
function dryRunPurchases(purchases: Purchases): Purchases {
  const byKey = new Map<string, Purchase>();
  const byId = new Map<string, Purchase>();
  return {
    ofKey: async (licenseKey) => byKey.get(licenseKey) ?? (await purchases.ofKey(licenseKey)),
    get: (purchaseId) => byId.get(purchaseId) ?? purchases.get(purchaseId),
    add(purchase) {
      byKey.set(purchase.licenseKey, purchase);
      byId.set(purchase.purchaseId, purchase);
    },
  };
}

function purchaseIdentities({ licenseKey, purchaseId }: PurchaseRow): string[] {
  return [`key ${licenseKey}`, ...(purchaseId === null ? [] : [`id ${purchaseId}`])];
}

const purchaseTaken = {
  code: 'purchase_taken',
  detail: 'There already is another purchase with this id, or of this license key.',
};

/** Compares the values that the row has. */
function isSamePurchase(row: PurchaseRow, purchase: Purchase): boolean {
  const refundedAt = row.refundedAt ?? (row.isRefunded ? purchase.refundedAt : null);
  return (
    (row.purchaseId ?? purchase.purchaseId) === purchase.purchaseId &&
    row.licenseKey === purchase.licenseKey &&
    row.isRefunded === (purchase.refundedAt !== null) &&
    secondOf(refundedAt) === secondOf(purchase.refundedAt)
  );
}

/** A coupon of another store. `id`: null for a new id. */
export type CouponRow = { row: number; id: number | null; terms: CouponTerms };

type CouponImport = ImportRows<CouponRow> & { accountId: string };

/** Imports an account's coupons from another store. Redemptions in that store do not count here. */
export async function importCoupons(
  transaction: AuthorityTransaction,
  command: CouponImport,
): Promise<Result<ImportReport>> {
  const { accountId } = command;
  if ((await transaction.accounts.get(accountId)) === null) {
    return notFound('account');
  }
  const coupons = command.isDryRun ? dryRunCoupons(transaction.coupons) : transaction.coupons;
  // Rows with an id come first, because a generated id could take the id of another row.
  const isInOrder = command.rows.some(({ id }) => id === null);
  const rows = command.rows.toSorted((one, other) => Number(one.id === null) - Number(other.id === null));
  return await importEach(
    { ...command, rows },
    {
      importOne: (row) => importCoupon({ ...transaction, coupons }, row, accountId),
      identitiesOf: ({ id, terms }) =>
        isInOrder ? ['any'] : [`id ${id}`, `code ${foldCouponCode(terms.code)}`],
    },
  );
}

/**
 * Imports one coupon. Unlike the API, an import accepts a coupon for a product with a recurring price: the other store
 * may have created it before the price became recurring. It gives no discount while the price is recurring.
 */
async function importCoupon(
  transaction: AuthorityTransaction,
  { id, terms }: CouponRow,
  accountId: string,
): Promise<ImportedRow> {
  const { coupons } = transaction;
  const stored = await coupons.byCode(accountId, terms.code);
  if (stored !== null && (id ?? stored.id) === stored.id && isSameCoupon(terms, stored)) return 'unchanged';
  if (stored !== null) return codeTaken;
  if (!isPlainCouponCode(terms.code)) return { code: malformedCode.code, detail: malformedCode.detail };
  if (id !== null && (await coupons.isTaken(id))) {
    return { code: 'coupon_id_taken', detail: 'There already is another coupon with this id.' };
  }
  const [fault] = await couponScopeFaults(transaction, accountId, terms.scope);
  if (fault !== undefined) return { code: fault.code, detail: fault.detail };
  await coupons.add(accountId, terms, id);
  return 'imported';
}

/** Keeps writes in memory, so that a dry run finds a duplicate code or id. */
function dryRunCoupons(coupons: AuthorityTransaction['coupons']): typeof coupons {
  const added = new Map<string, Coupon>();
  const ids = new Set<number>();
  return {
    ...coupons,
    isTaken: (id) => ids.has(id) || coupons.isTaken(id),
    byCode: (accountId, code) => added.get(foldCouponCode(code)) ?? coupons.byCode(accountId, code),
    add: (_: string, terms: CouponTerms, id?: number | null) => {
      const coupon = { ...terms, id: id ?? 0 };
      ids.add(coupon.id);
      added.set(foldCouponCode(terms.code), coupon);
      return coupon;
    },
  };
}

function isSameCoupon(one: CouponTerms, other: CouponTerms): boolean {
  return comparable(one) === comparable(other);
}

function comparable({ scope, discount, code, startAt, endAt, ...terms }: CouponTerms): string {
  const { minimumPurchaseAmount, usageLimit, notes } = terms;
  const dates = [secondOf(startAt), secondOf(endAt)];
  return JSON.stringify([scope, discount, code, dates, minimumPurchaseAmount, usageLimit, notes]);
}
