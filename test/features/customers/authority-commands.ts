import type { CommandOf } from '../../../src/service/writer.ts';

const license = { licenseKey: 'KEY', tenant: { accountId: 'default', productKey: null } };

type OfCustomers = 'forgetCustomer' | 'rekeyLicense' | 'setLicenseUses' | 'transferLicense';

/** A command for each use case of this feature (support/app/authority-commands.ts). */
export const commands: { [Name in OfCustomers]: CommandOf<Name> } = {
  setLicenseUses: { ...license, uses: 9 },
  transferLicense: { ...license, buyerEmail: 'b@example.com', freesSeats: true },
  rekeyLicense: { ...license, newKey: 'KEY-2' },
  // A person with licenses would also be missing in the responses that are repeated.
  forgetCustomer: { buyerEmail: 'nobody@example.com', accountId: null },
};
