import { z } from 'zod';
import { type Coupon, couponFaults, couponTerms, type CouponTerms } from '../domain/checkout/coupon.ts';
import { formatDatetime, isInstant, parseDatetime } from '../domain/time.ts';
import { maxInitialUses, type License, type LicenseExtra } from '../domain/license.ts';
import { plainText } from '../domain/text.ts';
import type { CouponPage, UnreadableCoupon, StoredRedemption, UpstreamRedemption } from '../service/ports.ts';
import type { Applied } from '../domain/outbox/outcome.ts';
import { quoteReasons, type Cart, type Quote } from '../domain/checkout/quote.ts';
import { packLine } from '../domain/outbox/coupon-payload.ts';
import { readTerms } from './terms-wire.ts';

/** The limit for members of a license that the specification does not have, as JSON. */
const maxExtraBytes = 1_024;

/** The limit for each text of a license: it is stored with every key. */
const maxTextLength = 1_024;

/** A date on which a coupon’s validity depends: if it is invalid, the coupon is unreadable. */
const datetime = z.unknown().transform((value, context) => {
  const epochMs = parseForeignDate(value);
  if (epochMs !== null) return epochMs;
  context.addIssue('Invalid input: expected an RFC 3339 datetime');
  return z.NEVER;
});

/** A date on which nothing depends: if it is missing or invalid, it is 0, which stands for an unknown date. */
const displayDate = z
  .unknown()
  .optional()
  .transform((value) => parseForeignDate(value) ?? 0);

/** A text on which nothing depends; if it is not a text, or too long, it is empty. */
const displayText = z.union([z.string().max(maxTextLength), z.number().transform(String)]).catch('');

/** Some stores write numbers as texts. */
function numberOf(schema: z.ZodType<number>): z.ZodType<number> {
  return z.preprocess(
    (value) =>
      typeof value === 'string' && /^-?\d{1,16}(?:\.\d{1,16})?$/.test(value) ? Number(value) : value,
    schema,
  );
}

/**
 * Specification 2.2, and additional members. A member that no verdict depends on never makes the license unreadable.
 */
const license = z.looseObject({
  license_key: z.union([z.string(), z.int().transform(String)]),
  enabled: z.boolean(),
  product_link: displayText,
  buyer_email: displayText,
  // The specification does not say whether it may be negative. Sums with it must stay exact.
  uses: numberOf(z.int().max(maxInitialUses).min(-maxInitialUses)),
  date: displayDate,
});

/** Specification 2.1. Combinations that it does not forbid (a product key with `multi`) are accepted. */
const coupon = z
  .object({
    id: numberOf(z.int()),
    coupon_type: z.enum(['single', 'multi', 'collection']),
    percent_off: numberOf(z.number().positive().max(100)).nullish(),
    amount_off: numberOf(z.int().positive()).nullish(),
    code: z.string(),
    start_date: datetime.nullable(),
    end_date: datetime.nullable(),
    product_key: z.string().nullish(),
    collection_id: z.string().nullish(),
    minimum_purchase_amount: numberOf(z.int().positive()).nullable(),
    usage_limit: numberOf(z.int().nonnegative()).nullable(),
    notes: z.string().nullish(),
  })
  .transform((wire, context): Coupon => {
    const couponType = wire.coupon_type;
    const essentials = {
      couponType,
      percentOff: wire.percent_off ?? undefined,
      amountOff: wire.amount_off ?? undefined,
      productKey: (couponType === 'single' ? wire.product_key : null) ?? undefined,
      collectionId: (couponType === 'collection' ? wire.collection_id : null) ?? undefined,
    };
    const faults = couponFaults(essentials);
    for (const { parameter, detail } of faults) {
      context.addIssue({ code: 'custom', path: [parameter], message: detail });
    }
    if (faults.length > 0) return z.NEVER;
    const terms = couponTerms({ ...essentials, code: wire.code });
    return {
      ...terms,
      id: wire.id,
      startAt: wire.start_date,
      endAt: wire.end_date,
      minimumPurchaseAmount: wire.minimum_purchase_amount,
      usageLimit: wire.usage_limit,
      notes: wire.notes ?? null,
    };
  });

const licenseResponse = z.object({ data: license });
const couponResponse = z.object({ data: coupon });
const couponListResponse = z.object({ data: z.object({ coupons: z.array(z.unknown()) }) });
/** The name of an unreadable coupon. */
const couponName = z.object({
  id: z.int().nullable().catch(null),
  code: z.string().nullable().catch(null),
});

/**
 * Reads the response to a license operation, with the key as the upstream spells it; another key is an error. The terms
 * of a license are read only from a Latchkey: another store may mean something else by members of the same names.
 */
export function readLicense(body: unknown, licenseKey: string, isLatchkey: boolean): Parsed<License> {
  const reading = read(licenseResponse, body);
  if ('fault' in reading) return reading;
  const { data } = reading.value;
  return foldKey(data.license_key) === foldKey(licenseKey)
    ? { value: licenseFrom(data, isLatchkey) }
    : { fault: 'the response is about another license key' };
}

/** Reads a license of a Latchkey without an envelope. */
export function readBareLicense(body: unknown): Parsed<License> {
  const reading = read(license, body);
  return 'fault' in reading ? reading : { value: licenseFrom(reading.value, true) };
}

function licenseFrom(wire: z.infer<typeof license>, isLatchkey: boolean): License {
  const { license_key, product_link, buyer_email, uses, enabled, date, ...sent } = wire;
  const { terms = {}, others = sent } = (isLatchkey ? readTerms(enabled, sent) : null) ?? {};
  const extra = limitExtra(others);
  return {
    licenseKey: license_key.trim(),
    productKey: product_link,
    buyerEmail: buyer_email,
    uses,
    enabled,
    createdAt: date,
    ...terms,
    ...(extra !== null && { extra }),
  };
}

/**
 * The members that fit into the limit, in order; null if there are none. The shortest are kept first: a buyer decides how
 * long some members are, and they must not push out others, such as whether the purchase was refunded.
 */
export function limitExtra(
  others: Readonly<Record<string, unknown>>,
  maxBytes: number = maxExtraBytes,
): LicenseExtra | null {
  const sizes = new Map(Object.entries(others).map(([name, value]) => [name, jsonBytes(name, value) - 1]));
  let bytes = 1;
  for (const [name, size] of [...sizes].toSorted(([, one], [, other]) => one - other)) {
    bytes += size;
    if (bytes > maxBytes) sizes.delete(name);
  }
  return sizes.size === 0
    ? null
    : Object.fromEntries(Object.entries(others).filter(([name]) => sizes.has(name)));
}

/** The size of a member as JSON. A member that is nested too deeply for JSON.stringify has no room. */
function jsonBytes(name: string, value: unknown): number {
  try {
    return Buffer.byteLength(JSON.stringify({ [name]: value }));
  } catch {
    return Infinity;
  }
}

/** An agent gives a coupon that it has not delivered a negative id. */
const provisional =
  'id: Invalid input: provisional, because the upstream is an agent that has not delivered this coupon yet';

/**
 * Reads a response that holds one coupon; a coupon that is not `expected` is an error. `mayBeProvisional`: an agent that
 * has taken a creation has carried it out.
 */
export function readCoupon(
  body: unknown,
  expected: (coupon: Coupon) => boolean,
  { mayBeProvisional = false }: { mayBeProvisional?: boolean } = {},
): Parsed<Coupon> {
  const reading = read(couponResponse, body);
  if ('fault' in reading) return reading;
  const { data } = reading.value;
  if (data.id < 0 && !mayBeProvisional) return { fault: `data.${provisional}` };
  return expected(data) ? { value: data } : { fault: 'the response is about another coupon' };
}

/** Reads a list of coupons; unreadable ones are named. */
export function readCoupons(body: unknown): Parsed<CouponPage> {
  const reading = read(couponListResponse, body);
  if ('fault' in reading) return reading;
  const coupons: Coupon[] = [];
  const unreadable: UnreadableCoupon[] = [];
  for (const listed of reading.value.data.coupons) {
    const parsed = readListed(listed);
    if ('value' in parsed) coupons.push(parsed.value);
    else unreadable.push({ ...nameOf(listed), fault: parsed.fault });
  }
  return { value: { coupons, unreadable } };
}

function readListed(listed: unknown): Parsed<Coupon> {
  const parsed = read(coupon, listed);
  return 'value' in parsed && parsed.value.id < 0 ? { fault: provisional } : parsed;
}

function nameOf(listed: unknown): Omit<UnreadableCoupon, 'fault'> {
  return couponName.safeParse(listed).data ?? { id: null, code: null };
}

/** The parameters of a coupon's creation (specification 4.1); members that are not set are not sent. */
export function writeCoupon({ scope, discount, ...terms }: CouponTerms): Record<string, string> {
  return {
    coupon_type: scope.type,
    ...(scope.type === 'single' && { product_key: scope.productKey }),
    ...(scope.type === 'collection' && { collection_id: scope.collectionId }),
    ...(discount.type === 'percent'
      ? { percent_off: String(discount.percentOff) }
      : { amount_off: String(discount.amountOff) }),
    code: terms.code,
    ...(terms.startAt !== null && { start_date: formatDatetime(terms.startAt) }),
    ...(terms.endAt !== null && { end_date: formatDatetime(terms.endAt) }),
    ...(terms.minimumPurchaseAmount !== null && {
      minimum_purchase_amount: String(terms.minimumPurchaseAmount),
    }),
    ...(terms.usageLimit !== null && { usage_limit: String(terms.usageLimit) }),
    ...(terms.notes !== null && { notes: terms.notes }),
  };
}

/** The parameter of a license operation (specification 4.4). */
export function writeLicenseKey(licenseKey: string): Record<string, string> {
  return { license_key: licenseKey };
}

/** The first error, with its path; zod's texts name types, never values. */
export function read<Value>(schema: z.ZodType<Value>, body: unknown): Parsed<Value> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return { value: parsed.data };
  const issue = parsed.error.issues[0];
  return { fault: issue === undefined ? 'unreadable' : `${issue.path.join('.')}: ${issue.message}` };
}

export function foldKey(licenseKey: string): string {
  return plainText(licenseKey).trim().toLowerCase();
}

/** A value, or what is wrong with it. `shows`: as in `Applied`. */
export type Parsed<Value> = ({ value: Value } & Pick<Applied<Value>, 'shows'>) | { fault: string };

export type JsonObject = Readonly<Record<string, unknown>>;

/** Reads a body that must be a JSON object. */
export function readObject(text: string): Parsed<JsonObject> {
  if (text.trim() === '') return { fault: 'the response is empty' };
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? { value } : { fault: 'the response is not a JSON object' };
  } catch {
    return {
      fault: isHtml(text)
        ? 'the response is HTML, not JSON: a firewall or proxy?'
        : 'the response is not JSON',
    };
  }
}

/** Whether a body is an HTML page. */
export function isHtml(text: string): boolean {
  return /^\s*<(?:!doctype|html|head|body|\?xml)/i.test(text);
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const isoDate =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(:\d{2})?(?:[.,](\d{1,9}))?)? ?(Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?$/i;
const mailDate =
  /^(?:[A-Z][a-z]{2}, )?\d{1,2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}(?::\d{2})? (?:GMT|UTC|[+-]\d{4})$/;
/** As seconds this is the year 2286, as ms the year 1970. */
const maxSeconds = 10_000_000_000;

/**
 * Reads a foreign date as epoch ms: ISO 8601 (UTC if there is no zone), RFC 2822, or seconds or ms since 1970; null if
 * it is none of these.
 */
export function parseForeignDate(value: unknown): number | null {
  const epochMs = typeof value === 'string' ? parseText(value.trim()) : parseNumber(value);
  return epochMs !== null && isInstant(epochMs) ? epochMs : null;
}

function parseText(text: string): number | null {
  const iso = isoDate.exec(text);
  if (iso !== null) {
    const [, day, minutes = '00:00', seconds = ':00', fraction, zone] = iso;
    return parseDatetime(
      `${day}T${minutes}${seconds}${fraction === undefined ? '' : `.${fraction}`}${zoneOf(zone)}`,
    );
  }
  if (/^\d{9,13}$/.test(text)) return parseNumber(Number(text));
  const epochMs = mailDate.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(epochMs) ? null : epochMs;
}

/** As RFC 3339 writes it. */
function zoneOf(zone: string | undefined): string {
  const offset = /^([+-]\d{2}):?(\d{2})?$/.exec(zone ?? '');
  return offset === null ? 'Z' : `${offset[1]}:${offset[2] ?? '00'}`;
}

function parseNumber(value: unknown): number | null {
  if (typeof value !== 'number' || !Number.isFinite(value)) return null;
  return Math.round(Math.abs(value) < maxSeconds ? value * 1_000 : value);
}

/* Redemptions at a Latchkey (`/agent/v1/redemptions`), as an agent sends and reads them. */

/** The body of a redemption, as JSON. */
export function writeRedemption({
  order,
  cart,
  answeredAt,
}: Pick<UpstreamRedemption, 'order' | 'cart' | 'answeredAt'>): string {
  const answered = answeredAt === null ? {} : { answered_at: formatDatetime(answeredAt) };
  return JSON.stringify({ order, ...writeCart(cart), ...answered });
}

function writeCart({ code, currency, lines }: Cart): object {
  const items = lines.map(packLine).map(({ productKey, collectionIds, ...line }) => ({
    product_key: productKey,
    ...line,
    ...(collectionIds !== undefined && { collection_ids: collectionIds }),
  }));
  return { code, ...(currency !== null && { currency }), items };
}

const text = z.string().max(500);

export const quote = z
  .object({
    code: text,
    coupon_id: z.int().nullable(),
    reasons: z.array(z.enum(quoteReasons)),
    subtotal: z.int(),
    eligible_subtotal: z.int(),
    discount: z.int(),
    total: z.int(),
    lines: z.array(
      z
        .object({ product_key: text, amount: z.int(), quantity: z.int(), discount: z.int() })
        .transform(({ product_key: productKey, ...line }) => ({ productKey, ...line })),
    ),
  })
  .transform(({ coupon_id: couponId, eligible_subtotal: eligibleSubtotal, ...rest }): Quote => ({
    couponId,
    eligibleSubtotal,
    ...rest,
  }));

const redemption = z.object({
  data: z.intersection(quote, z.object({ order: z.string(), over_limit: z.boolean() })),
});

/** Reads the stored redemption of this order. */
export function readRedemption(body: JsonObject, order: string): Parsed<StoredRedemption> {
  const parsed = redemption.safeParse(body);
  if (!parsed.success) return { fault: 'the response is not that of a redemption' };
  const { order: answered, over_limit: isOverLimit, ...quoted } = parsed.data.data;
  if (answered !== order) return { fault: 'the response is about another order' };
  return { value: { quote: quoted, isOverLimit } };
}
