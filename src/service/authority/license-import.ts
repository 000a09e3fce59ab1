import type { License } from '../../domain/license.ts';
import type { Product } from '../../domain/product.ts';
import type { Tenant } from '../../domain/access/principal.ts';
import { isPlainLicenseKey, unusualKey } from '../../domain/license-key.ts';
import { unknownProduct } from '../../domain/problem/not-found.ts';
import type { Result } from '../../domain/problem/problem.ts';
import type { Context } from '../ports.ts';
import type { AuthorityTransaction, Awaitable } from '../tables.ts';
import { importEach, isSameSecond, type ImportedRow, type ImportReport, type ImportRows } from './import.ts';

/** A license as another store had it; null: the file does not say. */
export type LicenseRow = {
  row: number;
  licenseKey: string;
  productKey: string;
  buyerEmail: string;
  uses: number | null;
  enabled: boolean | null;
  createdAt: number | null;
};

export type LicenseImport = ImportRows<LicenseRow> & {
  /** The account whose products they are of; null: any. */
  accountId: Tenant['accountId'] | null;
};

type Tables = {
  products: Pick<AuthorityTransaction['products'], 'get'>;
  licenses: Pick<AuthorityTransaction['licenses'], 'get' | 'add'>;
};

/**
 * Takes licenses over from another store, with their dates, counts and states. A key that is here already, and
 * is as the row says, is left as it is, so that an import can be repeated.
 */
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

/** The tables of an import; a dry run only remembers, so that a key given twice is found. */
export function importTables(
  { products, licenses }: Pick<AuthorityTransaction, 'products' | 'licenses'>,
  { isDryRun }: { isDryRun: boolean },
): Tables {
  const tables = { products: readOnce(products), licenses };
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

/** Thousands of rows are of the same few products, also those that ask together. */
function readOnce(products: Tables['products']): Tables['products'] {
  const known = new Map<string, Awaitable<Product | null>>();
  return {
    get: (productKey) => {
      let product = known.get(productKey);
      if (product === undefined) {
        product = products.get(productKey);
        known.set(productKey, product);
      }
      return product;
    },
  };
}

/** Imports one license. */
export async function importLicense(
  { products, licenses }: Tables,
  row: LicenseRow,
  accountId: string | null,
  now: number,
): Promise<ImportedRow> {
  const product = await products.get(row.productKey);
  if (product === null || (accountId !== null && product.accountId !== accountId)) {
    return { code: unknownProduct.code, detail: unknownProduct.detail };
  }
  // A license with an unusual key may be here from an earlier version.
  const isUnusual = !isPlainLicenseKey(row.licenseKey) && (await licenses.get(row.licenseKey)) === null;
  if (isUnusual) return { code: unusualKey.code, detail: unusualKey.detail };
  if (await licenses.add(licenseOf(row, now))) return 'imported';
  const stored = await licenses.get(row.licenseKey);
  if (stored !== null && agrees(row, stored)) return 'unchanged';
  return { code: 'license_key_taken', detail: 'There already is another license with this key.' };
}

function licenseOf(row: LicenseRow, now: number): License {
  const { licenseKey, productKey, buyerEmail } = row;
  const { uses, enabled, createdAt } = row;
  return {
    licenseKey,
    productKey,
    buyerEmail,
    uses: uses ?? 0,
    enabled: enabled ?? true,
    createdAt: createdAt ?? now,
  };
}

/** Whether a license is as a row says, as far as it says anything. */
function agrees(row: LicenseRow, license: License): boolean {
  return (
    row.productKey === license.productKey &&
    row.buyerEmail === license.buyerEmail &&
    (row.uses ?? license.uses) === license.uses &&
    (row.enabled ?? license.enabled) === license.enabled &&
    isSameSecond(row.createdAt ?? license.createdAt, license.createdAt)
  );
}
