import { z } from 'zod';
import { leaseTermLimits, maxExpiryGraceMs, type ProductTerms } from '../domain/catalogue.ts';
import { maxInitialUses, type License } from '../domain/license.ts';
import {
  hasTerms,
  isMetadata,
  licenseStatuses,
  maxEntitlementLength,
  maxEntitlements,
  maxMetadataBytes,
  type TermsChange,
} from '../domain/terms.ts';
import { formatDatetime, isInstant, parseDatetime, spanPattern } from '../domain/time.ts';
import { instant, integer, textMatching } from './parameters.ts';

/* The terms of licenses in requests and responses. */

/** Members of a license that only a license with terms has. */
export const termMembers = {
  status: z
    .enum(licenseStatuses)
    .optional()
    .describe('`grace`: the license has ended, and is still answered as valid. `expired`: it is not.'),
  expires_at: instant
    .nullable()
    .optional()
    .describe('The last instant at which the license is valid; null: it never ends.'),
  grace_until: instant.optional().describe('Until when it is answered as valid after `expires_at`.'),
  uses_limit: z.int().optional().describe('A use beyond it is refused.'),
  entitlements: z.array(z.string()).readonly().optional().describe('What the license unlocks, sorted.'),
  metadata: z.record(z.string(), z.unknown()).readonly().optional().describe('What the seller has noted.'),
  seats: z
    .int()
    .optional()
    .describe('Devices that may use it at the same time, in place of those of its product.'),
  lease_hold_s: z.int().optional(),
  lease_term_s: z.int().optional(),
  lease_refresh_s: z.int().optional(),
};

type TermMembers = z.infer<z.ZodObject<typeof termMembers>>;

/** Writes the terms of a license; nothing if it has none. */
export function serializeTerms(license: License): TermMembers {
  if (!hasTerms(license)) return {};
  const { status, expiresAt = null, graceUntil = null, usesLimit = null, terms } = license;
  const { entitlements, metadata, seats, leaseHoldMs, leaseTermMs, leaseRefreshMs } = terms ?? {};
  return {
    ...(status !== undefined && { status }),
    expires_at: expiresAt === null ? null : formatDatetime(expiresAt),
    ...(graceUntil !== null && { grace_until: formatDatetime(graceUntil) }),
    ...(usesLimit !== null && { uses_limit: usesLimit }),
    ...(entitlements !== undefined && { entitlements }),
    ...(metadata !== undefined && { metadata }),
    ...(seats !== undefined && { seats }),
    ...(leaseHoldMs !== undefined && { lease_hold_s: leaseHoldMs / 1000 }),
    ...(leaseTermMs !== undefined && { lease_term_s: leaseTermMs / 1000 }),
    ...(leaseRefreshMs !== undefined && { lease_refresh_s: leaseRefreshMs / 1000 }),
  };
}

const plainDate = /^\d{4}-\d{2}-\d{2}$/;

/** Reads the end of a license as epoch ms in whole seconds: a date stands for its end in UTC, `none` for never. */
export function parseEnd(input: string): number | null | undefined {
  if (input === 'none') return null;
  const end = parseDatetime(plainDate.test(input) ? `${input}T23:59:59Z` : input);
  return end === null || !isInstant(end) ? undefined : Math.floor(end / 1000) * 1000;
}

const noEnd = 'not_a_datetime: must be a date, an RFC 3339 datetime, or none';

/** What an end looks like; whether the day exists, `parseEnd` knows. */
const endText = String.raw`^(?:none|\d{4}-\d{2}-\d{2}(?:[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2}))?)$`;

const end = z
  .string(noEnd)
  .meta({ pattern: endText })
  .transform(parseEnd)
  .refine((input) => input !== undefined, noEnd)
  .describe('A date stands for its end in UTC, `none` for no end.');

/** An integer, or `none` for null. */
function integerOrNone(minimum: number, maximum: number) {
  const error = `out_of_range: must be from ${minimum} to ${maximum}, or none`;
  return z.union([z.literal('none').transform(() => null), integer(minimum, maximum)], error);
}

const word = new RegExp(String.raw`^[\w.:-]{1,${maxEntitlementLength}}$`);
const notWords = `malformed: must be at most ${maxEntitlements} words of letters, digits and . _ : -, each with at most ${maxEntitlementLength} characters`;

const listOfWords = z
  .array(z.string(notWords).regex(word, notWords), notWords)
  .max(maxEntitlements, notWords);

/** Words with white space or commas between them, as a form or a cell has them. */
const wordsInText = z
  .string()
  .meta({
    pattern: String.raw`^[\s,;]*(?:[\w.:-]{1,${maxEntitlementLength}}(?:[\s,;]+|$)){0,${maxEntitlements}}$`,
  })
  .transform((input) => input.split(/[\s,;]+/).filter((each) => each !== ''))
  .pipe(listOfWords);

/** A list, or its words as text. */
const entitlements = z
  .union([listOfWords, wordsInText], notWords)
  .transform((input): readonly string[] => [...new Set(input)].toSorted());

const notMetadata = `malformed: must be a JSON object of at most ${maxMetadataBytes} bytes`;

/** An object, or its JSON as text. */
const metadata = z.preprocess(
  (input) => {
    try {
      return typeof input === 'string' ? (JSON.parse(input) as unknown) : input;
    } catch {
      return null;
    }
  },
  z.record(z.string(), z.unknown(), notMetadata).refine(isMetadata, notMetadata),
);

const { maxSeats, maxHoldMs, minTermMs, maxTermMs, minRefreshMs } = leaseTermLimits;

/** The terms of a license in a request. `none` removes a term; an empty list or object does so, too. */
export const termParameters = {
  expires_at: end.optional(),
  uses_limit: integerOrNone(0, maxInitialUses).optional(),
  entitlements: entitlements.optional(),
  metadata: metadata.optional(),
  seats: integerOrNone(1, maxSeats).optional(),
  lease_hold_s: integerOrNone(0, maxHoldMs / 1000).optional(),
  lease_term_s: integerOrNone(minTermMs / 1000, maxTermMs / 1000).optional(),
  lease_refresh_s: integerOrNone(minRefreshMs / 1000, maxTermMs / 1000).optional(),
};

type TermsSent = Omit<TermsChange, 'leaseHoldMs' | 'leaseTermMs' | 'leaseRefreshMs'> & {
  leaseHoldS?: number | null | undefined;
  leaseTermS?: number | null | undefined;
  leaseRefreshS?: number | null | undefined;
};

/** Splits parameters into the terms of a license and the others. */
export function withTerms<Sent extends TermsSent>({
  expiresAt,
  usesLimit,
  entitlements: words,
  metadata: object,
  seats,
  leaseHoldS,
  leaseTermS,
  leaseRefreshS,
  ...others
}: Sent): Omit<Sent, keyof TermsSent> & { terms: TermsChange } {
  const ms = (seconds: number | null | undefined): number | null | undefined => seconds && seconds * 1000;
  const lease = {
    leaseHoldMs: ms(leaseHoldS),
    leaseTermMs: ms(leaseTermS),
    leaseRefreshMs: ms(leaseRefreshS),
  };
  return {
    ...others,
    terms: { expiresAt, usesLimit, entitlements: words, metadata: object, seats, ...lease },
  };
}

/** How long a license is valid or is renewed. */
export const span = textMatching(spanPattern, 6, 'must be a span such as 30d, 2w, 6mo or 1y');

/** What a product says about its licenses. */
export const productTermMembers = {
  license_for: z
    .string()
    .nullable()
    .describe('How long a new license is valid, such as `1y`; null: for ever.'),
  entitlements: z.array(z.string()).readonly().describe('What a new license unlocks.'),
  expiry_grace_s: z.int().describe('How long licenses are answered as valid after their end.'),
};

export const productTermParameters = {
  license_for: z
    .union(
      [z.literal('none').transform(() => null), span],
      'malformed: must be a span such as 30d, 2w, 6mo or 1y, or none',
    )
    .optional(),
  entitlements: entitlements.optional(),
  expiry_grace_s: integer(0, maxExpiryGraceMs / 1000).optional(),
};

type ProductTermsSent = {
  licenseFor?: string | null | undefined;
  entitlements?: readonly string[] | undefined;
  expiryGraceS?: number | undefined;
};

/** Splits the parameters of a product into what it says about its licenses and the others. */
export function withProductTerms<Sent extends ProductTermsSent>({
  licenseFor,
  entitlements: words,
  expiryGraceS,
  ...others
}: Sent): Omit<Sent, keyof ProductTermsSent> & { licenseTerms: Partial<ProductTerms> } {
  const licenseTerms = {
    ...(licenseFor !== undefined && { licenseFor }),
    ...(words !== undefined && { entitlements: words }),
    ...(expiryGraceS !== undefined && { expiryGraceMs: expiryGraceS * 1000 }),
  };
  return { ...others, licenseTerms };
}
