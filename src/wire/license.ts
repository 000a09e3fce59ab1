import { z } from 'zod';
import { formatDatetime } from '../domain/datetime.ts';
import { maximumLicenseKeyLength, parseLicenseKey } from '../domain/license-key.ts';
import type { License, SoldLicense } from '../domain/license.ts';
import type { Page } from '../domain/page.ts';
import type { LicenseFilter } from '../service/authority/tables.ts';
import { boolean, identifier, refined, refuse, soughtEmail, text, texts } from './types.ts';
import { pageShape } from './page.ts';
import { parameters, type ParameterSet } from './parameters.ts';
import type { HistoryEntry, LicenseState } from '../domain/history.ts';

/** The license key object of specification 2.2. */
export type LicenseObject = {
  license_key: string;
  enabled: boolean;
  product_link: string;
  buyer_email: string;
  uses: number;
  date: string;
};

const licenseMembers = {
  license_key: z.string(),
  enabled: z.boolean(),
  product_link: z.string(),
  buyer_email: z.string(),
  uses: z.int(),
  date: z.iso.datetime({ offset: true }),
};

export const licenseObject: z.ZodType<LicenseObject> = z.object(licenseMembers).meta({ id: 'License' });

/** Writes a license as specification 2.2 shows it. */
export function serializeLicense(license: License): LicenseObject {
  return {
    license_key: license.licenseKey,
    enabled: license.enabled,
    product_link: license.productKey,
    buyer_email: license.buyerEmail,
    uses: license.uses,
    date: formatDatetime(license.createdAt),
  };
}

/** A license as an authority lists it: the object of the specification, and what is known of its sale. */
export type SoldLicenseObject = LicenseObject & { purchase_id: string | null; refunded_at: string | null };

const soldLicenseObject: z.ZodType<SoldLicenseObject> = z
  .object({
    ...licenseMembers,
    purchase_id: z.string().nullable(),
    refunded_at: z.iso.datetime({ offset: true }).nullable(),
  })
  .meta({ id: 'SoldLicense' });

export function serializeSoldLicense(license: SoldLicense): SoldLicenseObject {
  const { purchaseId, refundedAt } = license;
  return {
    ...serializeLicense(license),
    purchase_id: purchaseId,
    refunded_at: refundedAt === null ? null : formatDatetime(refundedAt),
  };
}

/** A license as a store writes it that also tells the name of its product, and perhaps more. */
export type NamedLicenseObject = LicenseObject & { product_name?: unknown };

export const namedLicenseObject: z.ZodType<NamedLicenseObject> = z
  .looseObject({ ...licenseMembers, product_name: z.string().optional() })
  .meta({ id: 'NamedLicense' });

/** Writes a license with whatever the upstream told of it, and the name of its product where that is known. */
export function serializeNamedLicense(license: License, productName: string | null): NamedLicenseObject {
  return {
    ...serializeLicense(license),
    ...license.extra,
    ...(productName !== null && { product_name: productName }),
  };
}

/** A license key in its stored form; null when no key can look like this. White space alone counts as missing. */
export function licenseKeyText(maximum?: number): z.ZodType<string | null> {
  const schema = { maxLength: maximumLicenseKeyLength, pattern: String.raw`\S` };
  return refined(text(maximum), schema, (given, issues) =>
    given.trim() === '' ? refuse(issues, 'required', 'is required') : parseLicenseKey(given),
  );
}

/** The one parameter of every license operation (specification 4.4). */
export const licenseParameters: ParameterSet<{ licenseKey: string | null }> = parameters(
  {
    license_key: licenseKeyText(),
  },
  { id: 'LicenseKey' },
);

/** A license key that is looked for; one that no key can look like is '', which no license has. */
export const soughtLicenseKey: z.ZodType<string> = licenseKeyText()
  .transform((key) => key ?? '')
  .meta({ override: ({ jsonSchema }) => delete jsonSchema.maxLength });

/**
 * A product by its key, or by a link whose last part is the key. The link fits into the headers of a request also when
 * each character takes 12 bytes.
 */
const productLink: z.ZodType<string> = text(500).transform((given) => {
  const [path = ''] = given.trim().split(/[?#]/, 1);
  return path.split('/').findLast((part) => part !== '') ?? '';
});

/** The parameters of the first version's license operations; they come by query or by body. */
export const firstVersionParameters: ParameterSet<{ productLink: string; licenseKey: string | null }> =
  parameters({ product_link: productLink, license_key: licenseKeyText() }, { id: 'LicenseKeyOfProduct' });

/** `GET /admin/v1/licenses`. */
export const licenseQuery: ParameterSet<
  Omit<LicenseFilter, 'reach'> & { accountId?: string | undefined } & Page
> = parameters({
  account_id: identifier.optional(),
  product_key: identifier.optional(),
  license_key: soughtLicenseKey.optional(),
  enabled: boolean.optional(),
  buyer_email: soughtEmail.optional(),
  ...pageShape('licenses'),
});

export const licenseList: z.ZodType<{ licenses: SoldLicenseObject[] }> = z
  .object({
    licenses: z.array(soldLicenseObject),
  })
  .meta({ id: 'LicenseList' });

export type ChangeObject = {
  at: string;
  change: string;
  credential: string;
  before: LicenseState;
  after: LicenseState;
};

const state: z.ZodType<LicenseState> = z
  .object({ uses: z.int(), enabled: z.boolean() })
  .meta({ id: 'LicenseState' });

const changeObject: z.ZodType<ChangeObject> = z
  .object({
    at: z.iso.datetime({ offset: true }),
    change: z.string(),
    credential: z.string(),
    before: state,
    after: state,
  })
  .meta({ id: 'Change' });

export const changeList: z.ZodType<{ changes: ChangeObject[] }> = z
  .object({
    changes: z.array(changeObject),
  })
  .meta({ id: 'ChangeList' });

export function serializeChange({ at, change, credential, before, after }: HistoryEntry): ChangeObject {
  return { at: formatDatetime(at), change, credential, before, after };
}

/** The most license keys of one request. */
const maximumKeys = 10_000;

const licenseKeys = texts
  .refine((given) => given.length > 0 && given.length <= maximumKeys, {
    message: `must have 1 to ${maximumKeys} license keys`,
    params: { code: 'out_of_range' },
  })
  .transform((given) => given.map(parseLicenseKey))
  .refine((keys): keys is string[] => keys.every((key) => key !== null), {
    message: `must hold license keys of 1 to ${maximumLicenseKeyLength} characters`,
    params: { code: 'malformed' },
  })
  .meta({
    override: {
      items: {
        type: 'string',
        minLength: 1,
        maxLength: maximumLicenseKeyLength,
        pattern: String.raw`\S`,
      },
      minItems: 1,
      maxItems: maximumKeys,
    },
  });

/** `POST /admin/v1/preload`; without `product_key`, each configured product is asked for the keys. */
export const preloadParameters: ParameterSet<{
  licenseKeys: readonly string[];
  productKey?: string | undefined;
}> = parameters({ license_keys: licenseKeys, product_key: identifier.optional() }, { id: 'LicenseKeys' });

export const queuedObject: z.ZodType<{ queued: number }> = z
  .object({ queued: z.int() })
  .meta({ id: 'Queued' });
