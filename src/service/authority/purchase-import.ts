import type { Result } from '../../domain/problem/problem.ts';
import type { Purchase } from '../../domain/purchase.ts';
import type { Context } from '../ports.ts';
import type { AuthorityTransaction, Awaitable } from '../tables.ts';
import { importEach, isSameSecond, type ImportedRow, type ImportReport, type ImportRows } from './import.ts';
import { importLicense, importTables, type LicenseImport, type LicenseRow } from './license-import.ts';

/** A purchase of another store, with its license; null: the file has no value. */
export type PurchaseRow = LicenseRow & { purchaseId: string | null; refundedAt: number | null };

export type PurchaseImport = ImportRows<PurchaseRow> & Pick<LicenseImport, 'accountId'>;

/** Imports purchases and their licenses. Without a value for `enabled`, the license of a refunded purchase is disabled. */
export async function importPurchases(
  transaction: AuthorityTransaction,
  command: PurchaseImport,
  { now, random }: Context,
): Promise<Result<ImportReport>> {
  const tables = importTables(transaction, command);
  const purchases = command.isDryRun ? rehearsed(purchasesIn(transaction)) : purchasesIn(transaction);
  const importOne = async (row: PurchaseRow): Promise<ImportedRow> => {
    const { purchaseId, licenseKey, refundedAt } = row;
    const stored =
      (await purchases.ofKey(licenseKey)) ?? (purchaseId === null ? null : await purchases.get(purchaseId));
    if (stored !== null && !agrees(row, stored)) return purchaseTaken;
    const enabled = row.enabled ?? (refundedAt === null ? null : false);
    const license = await importLicense(tables, { ...row, enabled }, command.accountId, now);
    if (typeof license === 'object' || stored !== null) return license;
    // If the license was stored before, it has the date of the sale.
    const known = license === 'unchanged' ? await tables.licenses.get(licenseKey) : null;
    const createdAt = row.createdAt ?? known?.createdAt ?? now;
    await purchases.add({ purchaseId: purchaseId ?? random.uuid(now), licenseKey, createdAt, refundedAt });
    return 'imported';
  };
  return await importEach(command, { importOne, identitiesOf });
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
function rehearsed(purchases: Purchases): Purchases {
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

function identitiesOf({ licenseKey, purchaseId }: PurchaseRow): string[] {
  return [`key ${licenseKey}`, ...(purchaseId === null ? [] : [`id ${purchaseId}`])];
}

const purchaseTaken = {
  code: 'purchase_taken',
  detail: 'There already is another purchase with this id, or of this license key.',
};

/** Compares the values that the row has. */
function agrees({ purchaseId, licenseKey, refundedAt }: PurchaseRow, purchase: Purchase): boolean {
  return (
    (purchaseId ?? purchase.purchaseId) === purchase.purchaseId &&
    licenseKey === purchase.licenseKey &&
    isSameSecond(refundedAt, purchase.refundedAt)
  );
}
