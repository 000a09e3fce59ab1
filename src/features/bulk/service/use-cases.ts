import type { FeatureUseCases } from '../../../service/audit.ts';
import { importCoupons, importLicenses, importPurchases, type ImportReport } from './import.ts';

type BulkUseCases = {
  importCoupons: typeof importCoupons;
  importLicenses: typeof importLicenses;
  importPurchases: typeof importPurchases;
};

declare module '../../../service/writer.ts' {
  interface UseCases extends BulkUseCases {}
}

export const useCases: BulkUseCases = { importCoupons, importLicenses, importPurchases };

export const audited: FeatureUseCases['audited'] = {
  importLicenses: (report) => ({ act: 'license.import', subject: 'catalogue', detail: countsOf(report) }),
  importPurchases: (report) => ({ act: 'purchase.import', subject: 'catalogue', detail: countsOf(report) }),
  importCoupons: (report, { accountId }) => ({
    act: 'coupon.import',
    subject: accountId,
    detail: countsOf(report),
  }),
};

function countsOf({ imported, unchanged, rejected }: ImportReport): string {
  // One row can have several faults.
  const rows = new Set(rejected.map(({ row }) => row));
  return `${imported} imported, ${unchanged} unchanged, ${rows.size} rejected`;
}
