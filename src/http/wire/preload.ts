import { z } from 'zod';
import { maximumLicenseKeyLength, parseLicenseKey } from '../../domain/license-key.ts';
import { identifier, texts } from './common/kind.ts';
import { parameters, type ParameterSet } from './common/parameters.ts';

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
