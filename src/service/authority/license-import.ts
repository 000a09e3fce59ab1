import type { License } from '../../domain/license.ts';
import type { Product } from '../../domain/product.ts';
import type { Tenant } from '../../domain/access/principal.ts';
import { isPlainLicenseKey, malformedKey } from '../../domain/license-key.ts';
import { unknownProduct } from '../../domain/problem/not-found.ts';
import type { Result } from '../../domain/problem/problem.ts';
import type { Context } from '../ports.ts';
import type { AuthorityTransaction, Awaitable } from '../tables.ts';
import { importEach, isSameSecond, type ImportedRow, type ImportReport, type ImportRows } from './import.ts';

/** A license of another store; null: the file has no value. */
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
  /** Accept only products of this account; null: any. */
  accountId: Tenant['accountId'] | null;
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

/** Reads each product once, also for concurrent rows: thousands of rows have the same few products. */
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
  // An earlier version may have stored a license with an unusual key.
  const isUnusual = !isPlainLicenseKey(row.licenseKey) && (await licenses.get(row.licenseKey)) === null;
  if (isUnusual) return { code: malformedKey.code, detail: malformedKey.detail };
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

/** Compares the values that the row has. */
function agrees(row: LicenseRow, license: License): boolean {
  return (
    row.productKey === license.productKey &&
    row.buyerEmail === license.buyerEmail &&
    (row.uses ?? license.uses) === license.uses &&
    (row.enabled ?? license.enabled) === license.enabled &&
    isSameSecond(row.createdAt ?? license.createdAt, license.createdAt)
  );
}
