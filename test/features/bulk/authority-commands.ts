import type { CommandOf } from '../../../src/service/writer.ts';
import { at } from '../../support/builders/store-builders.ts';

const noLicenseCells = { uses: null, enabled: null, createdAt: null, replacedBy: null, terms: {} };
const anyCoupon = { startAt: null, endAt: null, minimumPurchaseAmount: null, usageLimit: null, notes: null };

type Imports = 'importLicenses' | 'importPurchases' | 'importCoupons';

/** A command for each use case of this feature (support/app/authority-commands.ts). */
export const commands: { [Name in Imports]: CommandOf<Name> } = {
  importLicenses: {
    rows: [
      {
        ...noLicenseCells,
        row: 1,
        licenseKey: 'TAKEN-OVER',
        productKey: 'press',
        buyerEmail: 'a@example.com',
      },
    ],
    rejected: [],
    isAtomic: false,
    isDryRun: false,
    accountId: null,
  },
  importPurchases: {
    rows: [
      {
        ...noLicenseCells,
        row: 1,
        purchaseId: 'theirs',
        licenseKey: 'BOUGHT-THERE',
        productKey: 'press',
        buyerEmail: 'a@example.com',
        refundedAt: at,
        isRefunded: true,
      },
    ],
    rejected: [],
    isAtomic: false,
    isDryRun: false,
    accountId: null,
  },
  importCoupons: {
    rows: [
      {
        row: 1,
        id: 7,
        terms: {
          ...anyCoupon,
          scope: { type: 'multi' },
          discount: { type: 'amount', amountOff: 500 },
          code: 'THEIRS',
        },
      },
    ],
    rejected: [],
    isAtomic: false,
    isDryRun: false,
    accountId: 'default',
  },
};
