import { z } from 'zod';
import { maxInitialUses } from '../../../domain/license.ts';
import { boolean, email, integer, newLicenseKey, parameters } from '../../../wire/parameters.ts';

/** `POST /admin/v1/licenses/{key}/rekey`. */
export const rekeyParameters = parameters(
  { license_key: newLicenseKey.optional().describe('The new key; default: a generated one.') },
  { unknown: 'refused', id: 'LicenseRekey' },
);

/** `POST /admin/v1/licenses/{key}/transfer`. */
export const transferParameters = parameters(
  {
    buyer_email: email,
    free_seats: boolean
      .optional()
      .describe('Ends the devices of the license, frees their seats, and removes their names.'),
  },
  { unknown: 'refused', id: 'LicenseTransfer' },
);

/** `PUT /admin/v1/licenses/{key}/uses`. */
export const usesParameters = parameters(
  { uses: integer(0, maxInitialUses) },
  { unknown: 'refused', id: 'LicenseUses' },
);

/** `POST /admin/v1/customers/forget`. */
export const forgetParameters = parameters(
  { buyer_email: email },
  { unknown: 'refused', id: 'ForgetCustomer' },
);

export const forgottenObject = z
  .object({
    licenses: z.int().describe('Licenses that do not name the person any more.'),
    devices: z.int().describe('Devices of these licenses, whose names were removed.'),
  })
  .meta({ id: 'Forgotten' });

export type ForgottenObject = z.infer<typeof forgottenObject>;
