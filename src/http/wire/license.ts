import { z } from 'zod';
import { formatDatetime } from '../../domain/datetime.ts';
import { parseLicenseKey } from '../../domain/license-key.ts';
import type { License } from '../../domain/license.ts';
import type { Page } from '../../domain/page.ts';
import type { LicenseFilter } from '../../service/tables.ts';
import { boolean, text } from './kind.ts';
import { pageShape } from './page.ts';
import { parameters, type ParameterSet } from './parameters.ts';

/** The license key object of specification 2.2. */
export type LicenseObject = {
  license_key: string;
  enabled: boolean;
  product_link: string;
  buyer_email: string;
  uses: number;
  date: string;
};

export const licenseObject: z.ZodType<LicenseObject> = z
  .object({
    license_key: z.string(),
    enabled: z.boolean(),
    product_link: z.string(),
    buyer_email: z.string(),
    uses: z.int(),
    date: z.iso.datetime({ offset: true }),
  })
  .meta({ id: 'License' });

/** Writes a license as specification 2.2 shows it. */
export function presentLicense(license: License): LicenseObject {
  return {
    license_key: license.licenseKey,
    enabled: license.enabled,
    product_link: license.productKey,
    buyer_email: license.buyerEmail,
    uses: license.uses,
    date: formatDatetime(license.createdAt),
  };
}

/** A license key in its stored form; null when no key can look like this. White space alone counts as missing. */
export function licenseKeyText(maximum?: number): z.ZodType<string | null> {
  return text(maximum)
    .refine((given) => given.trim() !== '', { message: 'is required', params: { code: 'required' } })
    .transform(parseLicenseKey);
}

/** The one parameter of every license operation (specification 4.4). */
export const licenseParameters: ParameterSet<{ licenseKey: string | null }> = parameters({
  license_key: licenseKeyText(),
});

/** `GET /admin/v1/licenses`. */
export const licenseQuery: ParameterSet<LicenseFilter & Page> = parameters({
  product_key: text().optional(),
  enabled: boolean.optional(),
  buyer_email: text().optional(),
  ...pageShape,
});

export const licenseList: z.ZodType<{ licenses: LicenseObject[] }> = z.object({
  licenses: z.array(licenseObject),
});
