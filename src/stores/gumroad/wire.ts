import { z } from 'zod';
import type { KeyPage } from '../../domain/agent/preload.ts';
import { maxInitialUses, parseLicenseKey, type License, type LicenseExtra } from '../../domain/license.ts';
import { foldKey, parseForeignDate, read, type JsonObject, type Parsed } from '../../upstream/wire.ts';
import { parameters, type ValuesOf } from '../../wire/parameters.ts';
import { closedLicense, documentOf } from '../document.ts';
import type { Answer } from '../store.ts';

/** What Gumroad says in a 404 about a license key. */
export const texts = {
  unknown: 'That license does not exist for the provided product.',
  disabled: 'This license key has been disabled.',
  revoked: 'Access to the purchase associated with this license has expired.',
} as const;

/** The body of a 404 that says no about a key that exists; null: a text says something else. */
export function closed(message: unknown): LicenseExtra | null {
  return message === texts.disabled || message === texts.revoked ? { success: false, message } : null;
}

const text = z.string().max(1_024).catch('');

/** A response to a call about a license. What no verdict depends on never makes it unreadable. */
const answer = z.looseObject({
  success: z.literal(true),
  uses: z.int().nonnegative().max(maxInitialUses),
  purchase: z.looseObject({}).optional(),
  imported_customer: z.looseObject({ email: text.optional() }).optional(),
});

const shownPurchase = z
  .object({ license_key: text, email: text, product_permalink: text, sale_timestamp: z.unknown() })
  .partial();

/** Reads a response about a license key: the license, or that it is disabled. `now`: epoch ms. */
export function readLicense(body: JsonObject, licenseKey: string, now: number): Parsed<License> {
  const extra = closed(body['message']);
  if (extra !== null) return { value: closedLicense(licenseKey, extra), shows: 'enabled' };
  const reading = read(answer, body);
  if ('fault' in reading) return reading;
  const { uses, ...others } = reading.value;
  const { purchase: sale, imported_customer: imported } = others;
  const document = documentOf(others, ['purchase', 'imported_customer']);
  const bought = shownPurchase.safeParse(sale ?? {}).data ?? {};
  const spelled = bought.license_key ?? licenseKey;
  if (foldKey(spelled) !== foldKey(licenseKey)) return { fault: 'the response is about another license key' };
  return {
    value: {
      licenseKey: spelled,
      productKey: bought.product_permalink ?? '',
      buyerEmail: bought.email ?? imported?.email ?? '',
      uses,
      enabled: isGood(document, now),
      createdAt: parseForeignDate(bought.sale_timestamp) ?? 0,
      extra: document,
    },
  };
}

/** Reads the response to a rotation, which shows the new license key. */
export function readRotated(body: JsonObject): Parsed<JsonObject> {
  const reading = read(answer, body);
  return 'fault' in reading ? reading : { value: body };
}

/** What Gumroad says from now on about a license key that was replaced. */
export const replaced: Pick<License, 'enabled' | 'extra'> = {
  enabled: false,
  extra: { success: false, message: texts.unknown },
};

/** The query of a page of the sales of a product. */
export function writeSalesQuery(productId: string, pageKey: string | null): Record<string, string> {
  return { product_id: productId, ...(pageKey !== null && { page_key: pageKey }) };
}

/** The limit for the license keys of a page, of which Gumroad sends ten. */
const maxKeys = 1_000;

const salesPage = z.object({
  success: z.literal(true),
  sales: z.array(z.looseObject({ license_key: z.string().optional().catch(undefined) })).max(maxKeys),
  next_page_key: z.string().max(300).nullish(),
});

/** Reads a page of the sales of a product. A sale without a license key is left out. */
export function readSales(body: JsonObject): Parsed<KeyPage> {
  const reading = read(salesPage, body);
  if ('fault' in reading) return reading;
  const { sales, next_page_key: next = null } = reading.value;
  return {
    value: { licenseKeys: sales.flatMap(({ license_key: key }) => storedKey(key ?? '') ?? []), next },
  };
}

/** Members with the date on which a membership ends; null if it does not. */
const ends = ['subscription_ended_at', 'subscription_cancelled_at', 'subscription_failed_at'];

/** Whether a program that reads the whole answer finds the purchase good: not given back, and not ended. */
export function isGood({ purchase }: LicenseExtra, now: number): boolean {
  if (typeof purchase !== 'object' || purchase === null) return true;
  const members = purchase as JsonObject;
  if (members['refunded'] === true || members['chargebacked'] === true) return false;
  if (members['disputed'] === true && members['dispute_won'] !== true) return false;
  return !ends.some((name) => (parseForeignDate(members[name]) ?? Infinity) <= now);
}

/** Whether the purchase of a document is one of this permalink; true if the document does not show it. */
export function isOfPermalink({ purchase }: LicenseExtra, permalink: string): boolean {
  if (typeof purchase !== 'object' || purchase === null) return true;
  const { permalink: general, short_product_id: unique } = purchase as JsonObject;
  return [general, unique].some(
    (each) => typeof each === 'string' && each.toLowerCase() === permalink.toLowerCase(),
  );
}

/**
 * What Gumroad would answer to a verify now: what it last answered, with the count as callers see it. Null: it has not
 * said anything.
 */
export function verifyAnswer({ extra, uses, enabled }: License, now: number): Answer | null {
  if (extra === undefined || !('success' in extra)) return null;
  if (extra['success'] !== true) return { status: 404, body: extra };
  // The purchase is good, so the key was disabled.
  if (!enabled && isGood(extra, now)) return refusal(404, texts.disabled);
  return shown(extra, uses);
}

/** What Gumroad answers to a change: the license, also if it is disabled. */
export function changeAnswer({ extra = {}, uses }: License): Answer {
  if (extra['message'] === texts.revoked) return refusal(404, texts.revoked);
  return shown(extra['success'] === true ? extra : { success: true }, uses);
}

function shown({ success, ...others }: LicenseExtra, uses: number): Answer {
  return { status: 200, body: { success, uses, ...others } };
}

export function refusal(status: number, message: string): Answer {
  return { status, body: { success: false, message } };
}

export const licenseAnswer = z
  .looseObject({ success: z.literal(true), uses: z.int() })
  .meta({ id: 'GumroadLicense' });
export const refusalAnswer = z
  .object({ success: z.literal(false), message: z.string() })
  .meta({ id: 'GumroadRefusal' });

const sent = z.unknown().optional();

/** The parameters of each call. Nothing is refused here: what is wrong with one is said in Gumroad’s words. */
export const callParameters = parameters(
  {
    license_key: sent,
    product_id: sent,
    product_permalink: sent,
    id: sent.describe('An older name of `product_permalink`.'),
    link_id: sent.describe('An older name of `product_permalink`.'),
    increment_uses_count: sent.describe('A verify counts a use unless this is `false`.'),
    access_token: sent.describe('Of a change; `Authorization: Bearer` can carry it, too.'),
  },
  { id: 'GumroadCall' },
);

type Sent = Partial<ValuesOf<typeof callParameters>>;

/** What a call is about. `productId`, `permalink`: null if they are not sent. */
export type Call = {
  licenseKey: string | null;
  productId: string | null;
  permalink: string | null;
  isCounted: boolean;
  accessToken: string | null;
};

/** Reads a call; or the answer to one that is wrong, in the order in which Gumroad checks its parameters. */
export function readCall(values: Sent): Call | Answer {
  const named = {
    license_key: values.licenseKey,
    product_id: values.productId,
    product_permalink: values.productPermalink,
    id: values.id,
    link_id: values.linkId,
  };
  const wrong = Object.entries(named).find(([, value]) => value !== undefined && typeof value !== 'string');
  if (wrong !== undefined) return refusal(400, `The '${wrong[0]}' parameter must be a string.`);
  const [licenseKey, productId, ...permalinks] = Object.values(named).map(filled);
  const [current = null, id = null, linkId = null] = permalinks;
  const { incrementUsesCount: count } = values;
  return {
    licenseKey: licenseKey ?? null,
    productId: productId ?? null,
    permalink: id ?? linkId ?? current,
    isCounted: count !== 'false' && count !== false,
    accessToken: filled(values.accessToken),
  };
}

function filled(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value : null;
}

const issuedKey = /^[0-9a-f]{8}(?:-[0-9a-f]{8}){3}$/i;

/** The license key as it is stored: Gumroad finds a key in any letter case, and issues upper case. */
export function storedKey(sentKey: string): string | null {
  const licenseKey = parseLicenseKey(sentKey);
  return licenseKey !== null && issuedKey.test(licenseKey) ? licenseKey.toUpperCase() : licenseKey;
}

/** Gumroad asks for it since 2023. */
export const needsProductId: Answer = refusal(
  500,
  "The 'product_id' parameter is required to verify the license for this product.",
);

/** The form of a request. `isCounted`: of a verify only. */
export function writeCall(
  productId: string,
  licenseKey: string,
  isCounted?: boolean,
): Record<string, string> {
  return {
    product_id: productId,
    license_key: licenseKey,
    ...(isCounted !== undefined && { increment_uses_count: String(isCounted) }),
  };
}
