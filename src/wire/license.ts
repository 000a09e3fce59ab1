import { z } from 'zod';
import type { Purchase } from '../domain/catalogue.ts';
import { type SoldLicense, parseLicenseKey, type License } from '../domain/license.ts';
import type { LicenseStatus } from '../domain/terms.ts';
import { formatDatetime } from '../domain/time.ts';
import { localLicense, type LicenseSnapshot } from '../domain/agent/license-snapshot.ts';
import { explainedOperation, type ExplainedOperation } from './operation.ts';
import {
  boolean,
  identifier,
  emailFilter,
  searchText,
  text,
  texts,
  instant,
  parameters,
  licenseKeyText,
} from './parameters.ts';
import { pageShape } from './page.ts';
import { serializerOf, type ProgramValue } from './shape.ts';
import { serializeTerms, span, termMembers, termParameters } from './terms.ts';

const licenseMembers = {
  license_key: z.string(),
  enabled: z.boolean(),
  product_link: z.string(),
  buyer_email: z.string(),
  uses: z.int(),
  date: instant,
  ...termMembers,
};

/** The license key object of specification 2.2. */
export const licenseObject = z.object(licenseMembers).meta({ id: 'License' });

export type LicenseObject = z.infer<typeof licenseObject>;

export function serializeLicense(license: License): LicenseObject {
  return {
    license_key: license.licenseKey,
    enabled: license.enabled,
    product_link: license.productKey,
    buyer_email: license.buyerEmail,
    uses: license.uses,
    date: formatDatetime(license.createdAt),
    ...serializeTerms(license),
  };
}

/** A license in the list of an authority: the object of the specification, and its sale. */
export const soldLicenseObject = z
  .object({
    ...licenseMembers,
    purchase_id: z.string().nullable(),
    refunded_at: instant.nullable(),
  })
  .meta({ id: 'SoldLicense' });

export type SoldLicenseObject = z.infer<typeof soldLicenseObject>;

/** How a license stands for a person. */
export const licenseState = z
  .enum(['enabled', 'disabled', 'refunded', 'ended', 'expired', 'gone'])
  .describe(
    'What a verify answers now. `ended`: its end and its grace are over. `expired`: the upstream confirmed it too long ago. `gone`: the upstream no longer knows it.',
  );

export type LicenseStateName = z.infer<typeof licenseState>;

/**
 * A license in the list of an authority or an agent. An agent knows no purchases: `purchase_id` and `refunded_at` are
 * null there. The other members are null on an authority.
 */
export const listedLicenseObject = soldLicenseObject
  .extend({
    state: licenseState,
    freshness: z.enum(['fresh', 'stale', 'grace', 'expired']).nullable(),
    confirmed_at: instant.nullable().describe('When the upstream confirmed the license.'),
    pending: z.int().nullable().describe('Changes that have not reached the upstream.'),
    missing_since: instant
      .nullable()
      .optional()
      .describe(
        'Since when the upstream answers 404 for the key; null: it does not. After `freshness.gone`, the key is refused.',
      ),
  })
  .meta({ id: 'ListedLicense' });

export type ListedLicenseObject = z.infer<typeof listedLicenseObject>;

export function stateOfSold({ enabled, refundedAt, status }: SoldLicense): LicenseStateName {
  if (enabled) return status === 'expired' ? 'ended' : 'enabled';
  return refundedAt === null ? 'disabled' : 'refunded';
}

/** What a person sees of a license of an agent. Times are epoch ms. */
export type KnownSnapshot = Pick<LicenseSnapshot, 'license' | 'local' | 'confirmedAt' | 'gone'> & {
  /** How a license with terms stands. */
  status?: LicenseStatus | undefined;
  freshness: 'fresh' | 'stale' | 'grace' | 'expired';
  /** When the upstream began to answer 404 (epoch ms); null: the last read found the key. */
  missingSince: number | null;
};

export function stateOfSnapshot({ local, gone, freshness, status }: KnownSnapshot): LicenseStateName {
  if (gone) return 'gone';
  if (!local.enabled) return 'disabled';
  if (status === 'expired') return 'ended';
  return freshness === 'expired' ? 'expired' : 'enabled';
}

/** A license in the list of an authority. */
export function serializeListed(license: SoldLicense): ListedLicenseObject {
  return {
    ...serializeLicense(license),
    purchase_id: license.purchaseId,
    refunded_at: license.refundedAt === null ? null : formatDatetime(license.refundedAt),
    state: stateOfSold(license),
    freshness: null,
    confirmed_at: null,
    pending: null,
    missing_since: null,
  };
}

/** A license of an agent, with `enabled` as its seller has set it. */
function serializeKnown({ status, ...known }: KnownSnapshot): LicenseObject {
  return serializeLicense({ ...localLicense(known), ...(status !== undefined && { status }) });
}

/** A license in the list of an agent. */
export function serializeSnapshot(known: KnownSnapshot): ListedLicenseObject {
  return {
    ...serializeKnown(known),
    purchase_id: null,
    refunded_at: null,
    state: stateOfSnapshot(known),
    freshness: known.freshness,
    confirmed_at: formatDatetime(known.confirmedAt),
    pending: known.local.pending,
    missing_since: known.missingSince === null ? null : formatDatetime(known.missingSince),
  };
}

/** A license in the dialect of a store that adds the name of the product, and perhaps more. */
export const namedLicenseObject = z
  .looseObject({ ...licenseMembers, product_name: z.string().optional() })
  .meta({ id: 'NamedLicense' });

export type NamedLicenseObject = z.infer<typeof namedLicenseObject>;

/** Writes a license with all members that the upstream sent, and the name of the product if it is known. */
export function serializeNamedLicense(license: License, productName: string | null): NamedLicenseObject {
  return {
    ...serializeLicense(license),
    ...license.extra,
    ...(productName !== null && { product_name: productName }),
  };
}

/** The parameter of every license operation (specification 4.4). */
export const licenseParameters = parameters(
  {
    license_key: licenseKeyText,
    product_key: identifier.optional().describe('Only for a holder of leases that has several products.'),
  },
  { id: 'LicenseKey' },
);

/**
 * A product key, or a link that ends in the key. The link fits into the headers of a request even if each character
 * takes 12 bytes.
 */
const productLink = text(500).transform((input) => {
  const [path = ''] = input.trim().split(/[?#]/, 1);
  return path.split('/').findLast((part) => part !== '') ?? '';
});

/** License operations of the first version of the API, in the query or the body. */
export const firstVersionParameters = parameters(
  { product_link: productLink, license_key: licenseKeyText },
  { id: 'LicenseKeyOfProduct' },
);

/** `GET /admin/v1/licenses`. */
export const licenseQuery = parameters({
  account_id: identifier.optional(),
  product_key: identifier.optional(),
  license_key: licenseKeyText.optional(),
  enabled: boolean.optional(),
  buyer_email: emailFilter.optional(),
  search: searchText('license key', 'e-mail address of the buyer').optional(),
  ...pageShape('licenses'),
});

/** `PUT /admin/v1/licenses/:key`: terms that are missing stay as they are. */
export const licenseChange = parameters(termParameters, { unknown: 'refused', id: 'LicenseChange' });

/** `POST /admin/v1/licenses/:key/renew`. */
export const renewal = parameters({ for: span }, { unknown: 'refused', id: 'Renewal' });

export const licenseList = z.object({ licenses: z.array(listedLicenseObject) }).meta({ id: 'LicenseList' });

const state = z
  .object({
    uses: z.int(),
    enabled: z.boolean(),
    expires_at: instant.nullable().optional().describe('Of a change of the terms.'),
  })
  .meta({ id: 'LicenseState' });

export const changeObject = z
  .object({ at: instant, change: z.string(), credential: z.string(), before: state, after: state })
  .meta({ id: 'Change' });

export type ChangeObject = z.infer<typeof changeObject>;

export const changeList = z.object({ changes: z.array(changeObject) }).meta({ id: 'ChangeList' });

export const serializeChange = serializerOf(changeObject);

/** The maximum number of license keys in a request. */
const maximumKeys = 10_000;

const licenseKeys = texts
  .refine(
    (input) => input.length > 0 && input.length <= maximumKeys,
    `out_of_range: must have 1 to ${maximumKeys} license keys`,
  )
  .transform((input) => input.map(parseLicenseKey))
  .refine((keys): keys is string[] => keys.every((key) => key !== null), 'malformed: must hold license keys')
  .meta({
    override: {
      items: {
        type: 'string',
        minLength: 1,
        pattern: String.raw`\S`,
      },
      minItems: 1,
      maxItems: maximumKeys,
    },
  });

/** `POST /admin/v1/preload`; without `product_key`, the keys are looked up in every configured product. */
export const preloadParameters = parameters(
  { license_keys: licenseKeys, product_key: identifier.optional() },
  { id: 'LicenseKeys' },
);

/**
 * `GET /admin/v1/store/license-keys`. Without `product_key`, all configured products are listed, one after the other;
 * `after`: `next` of the response before.
 */
export const storeKeysParameters = parameters({
  product_key: identifier.optional(),
  after: text(500).optional(),
});

export const storeKeysObject = z
  .object({
    product_key: z.string().describe('The product of the license keys.'),
    license_keys: z.array(z.string()).readonly(),
    next: z
      .string()
      .nullable()
      .describe('The value of `after` for the next page; null: this is the last one.'),
  })
  .meta({ id: 'StoreLicenseKeys' });

export const serializeStoreKeys = serializerOf(storeKeysObject);

export const queuedObject = z.object({ queued: z.int() }).meta({ id: 'Queued' });

const count = z.int().min(0);

/** How an agent knows a license. */
const licenseFreshness = z
  .object({
    state: z.enum(['fresh', 'stale', 'grace', 'expired']),
    confirmed_at: instant.describe('When the upstream confirmed the license.'),
    grace_until: instant.describe(
      'Until when the license is answered if the upstream does not confirm it again.',
    ),
    confirmed: z
      .object({ uses: z.int(), enabled: z.boolean() })
      .meta({ id: 'ConfirmedLicense' })
      .describe('What the upstream said. The license itself contains the changes that are not sent yet.'),
  })
  .meta({ id: 'LicenseFreshness' });

/** `GET /admin/v1/licenses/:key`: what the page of one license shows. */
export const licenseDetail = z
  .object({
    license: licenseObject,
    state: licenseState,
    product: z
      .object({
        product_key: z.string(),
        name: z.string().nullable().describe('Null: unknown here.'),
        seats: z.int().nullable().describe('How many devices may have a seat; null: any number.'),
      })
      .meta({ id: 'LicenseProduct' }),
    replaced_by: z
      .string()
      .nullable()
      .describe('The license key that took the place of this one, which stays disabled; null: none.'),
    activations: count.describe('Devices that have asked for a seat.'),
    seats_taken: count,
    purchase: z
      .object({ purchase_id: z.string(), date: instant, refunded_at: instant.nullable() })
      .meta({ id: 'LicensePurchase' })
      .nullable()
      .describe('Null: not sold here, or this is an agent.'),
    freshness: licenseFreshness.nullable().describe('Null on an authority.'),
    operations: z
      .array(explainedOperation)
      .describe('Changes that have not reached the upstream, the oldest first; at most 100.'),
    operations_total: count,
  })
  .meta({ id: 'LicenseDetail' });

export type LicenseDetail = z.infer<typeof licenseDetail>;

type DetailFacts = Pick<ProgramValue<typeof licenseDetail>, 'product' | 'activations' | 'seatsTaken'>;

const writeDetail = serializerOf(
  licenseDetail.omit({ license: true, operations: true, operations_total: true }),
);

/** A license of an authority. */
export function serializeSoldDetail(
  sold: SoldLicense,
  { purchase, ...facts }: DetailFacts & { purchase: Purchase | null },
): LicenseDetail {
  return {
    license: serializeLicense(sold),
    ...writeDetail({
      ...facts,
      state: stateOfSold(sold),
      replacedBy: sold.replacedBy ?? null,
      purchase: purchase && { ...purchase, date: purchase.createdAt },
      freshness: null,
    }),
    operations: [],
    operations_total: 0,
  };
}

/** A license that an agent has stored. `graceUntil`: epoch ms. */
export function serializeSnapshotDetail(
  known: KnownSnapshot,
  {
    graceUntil,
    operations,
    operationsTotal,
    ...facts
  }: DetailFacts & { graceUntil: number; operations: ExplainedOperation[]; operationsTotal: number },
): LicenseDetail {
  const { license, freshness, confirmedAt } = known;
  return {
    license: serializeKnown(known),
    ...writeDetail({
      ...facts,
      state: stateOfSnapshot(known),
      replacedBy: null,
      purchase: null,
      freshness: { state: freshness, confirmedAt, graceUntil, confirmed: license },
    }),
    operations,
    operations_total: operationsTotal,
  };
}
