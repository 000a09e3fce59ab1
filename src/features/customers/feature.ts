import { commandGroup, helpLine } from '../../cli/command.ts';
import type { Feature } from '../../feature.ts';
import { noLocks } from '../../service/locks.ts';
import { tables } from './store/customer.ts';

/** What a seller does for the buyer of a license: another key, another buyer, another count, and forgetting a person. */
export const customers: Feature = {
  name: 'customers',
  // Devices follow a license, and have names.
  needs: ['leases'],
  routes: async () => (await import('./http/customer.ts')).customerRoutes,
  useCases: {
    load: () => import('./service/use-cases.ts'),
    locks: {
      // A refund locks the purchase first, too.
      rekeyLicense: ({ licenseKey }) => ({
        sharedGraces: [],
        purchase: [null, licenseKey],
        licenses: [[licenseKey]],
      }),
      transferLicense: ({ licenseKey }) => ({ licenses: [[licenseKey]] }),
      setLicenseUses: ({ licenseKey }) => ({ licenses: [[licenseKey]] }),
      // Its first read locks the licenses of the person.
      forgetCustomer: noLocks,
    },
  },
  tables,
  commands: [
    commandGroup('customer', 'Forget a person', () =>
      import('./cli/commands.ts').then(({ customer }) => customer),
    ),
  ],
  subcommands: { license: async () => (await import('./cli/commands.ts')).license },
  licensePart: async () => (await import('./cli/commands.ts')).licensePart,
  help: { Sell: [helpLine('customer', 'Forget a person')] },
};
