import type { ParameterFault, ProblemCode, ProblemDetails } from './error.ts';
import type { Cart, Freshness, License, Provenance, Quote, Redemption } from './types.ts';

/** Headers of a response, with lower-case names. */
export type Headers = Readonly<Record<string, string | undefined>>;

/** Gives a member of `value` if it is an object. */
export function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

/** Reads the license in a response body. Null: there is none. */
export function readLicenseBody(body: unknown): License | null {
  return readLicense(member(body, 'data'));
}

/** Reads a license in the form of the specification (2.2). Null: it is not a license. */
export function readLicense(data: unknown): License | null {
  const [key, product, email] = ['license_key', 'product_link', 'buyer_email'].map((name) =>
    member(data, name),
  );
  const [enabled, uses, date] = ['enabled', 'uses', 'date'].map((name) => member(data, name));
  if (typeof key !== 'string' || typeof product !== 'string' || typeof email !== 'string') return null;
  if (typeof enabled !== 'boolean' || typeof uses !== 'number' || typeof date !== 'string') return null;
  const at = new Date(date);
  if (Number.isNaN(at.getTime())) return null;
  const known = { licenseKey: key, productKey: product, buyerEmail: email, enabled, uses, date: at };
  return { ...known, ...readTerms(data, enabled) };
}

const statuses = ['active', 'grace', 'expired', 'disabled'] as const;

/** Reads the members that only a license with terms has. */
function readTerms(
  data: unknown,
  enabled: boolean,
): Pick<License, 'entitlements' | 'expiresAt' | 'graceUntil' | 'status'> {
  return {
    entitlements: list(member(data, 'entitlements')).map(String),
    expiresAt: readDate(String(member(data, 'expires_at'))),
    graceUntil: readDate(String(member(data, 'grace_until'))),
    status: statuses.find((each) => each === member(data, 'status')) ?? (enabled ? 'active' : 'disabled'),
  };
}

/** Writes a license in the form of the specification (2.2). */
export function writeLicense(license: License): object {
  return {
    license_key: license.licenseKey,
    enabled: license.enabled,
    product_link: license.productKey,
    buyer_email: license.buyerEmail,
    uses: license.uses,
    date: license.date.toISOString(),
    entitlements: license.entitlements,
    expires_at: license.expiresAt?.toISOString() ?? null,
    grace_until: license.graceUntil?.toISOString(),
    status: license.status,
  };
}

const freshnesses: ReadonlySet<Freshness> = new Set<Freshness>(['authoritative', 'fresh', 'stale', 'grace']);

/** Reads the `Latchkey-…` headers of a response. */
export function readProvenance(headers: Headers): Provenance {
  const freshness = headers['latchkey-freshness'] as Freshness;
  return {
    freshness: freshnesses.has(freshness) ? freshness : 'grace',
    confirmedAt: readDate(headers['latchkey-confirmed-at']),
    graceUntil: readDate(headers['latchkey-grace-until']),
    pending: Number(headers['latchkey-pending'] ?? 0) || 0,
  };
}

function readDate(text: string | undefined): Date | null {
  const at = new Date(text ?? Number.NaN);
  return Number.isNaN(at.getTime()) ? null : at;
}

/** Writes a cart as a request body. */
export function writeCart({ code, currency, items }: Cart): object {
  return {
    code,
    ...(currency !== undefined && { currency }),
    items: items.map(({ productKey, amount, quantity, collectionIds, recurring }) => ({
      product_key: productKey,
      amount,
      quantity,
      collection_ids: collectionIds,
      recurring,
    })),
  };
}

/** Reads the quote in a response body. Null: there is none. */
export function readQuote(body: unknown): Quote | null {
  const data = member(body, 'data');
  if (!isQuote(data)) return null;
  return {
    code: data.code,
    couponId: data.coupon_id,
    redeemable: data.redeemable,
    reasons: data.reasons,
    subtotal: data.subtotal,
    eligibleSubtotal: data.eligible_subtotal,
    discount: data.discount,
    total: data.total,
    items: data.lines.map(({ product_key: productKey, ...rest }) => ({ productKey, ...rest })),
    scope: data.scope ?? 'everywhere',
  };
}

/** Reads the redemption in a response body. Null: there is none. */
export function readRedemption(body: unknown): Redemption | null {
  const quote = readQuote(body);
  const [order, at] = ['order', 'redeemed_at'].map((name) => member(member(body, 'data'), name));
  if (quote === null || typeof order !== 'string' || typeof at !== 'string') return null;
  const redeemedAt = new Date(at);
  return Number.isNaN(redeemedAt.getTime()) ? null : { ...quote, order, redeemedAt };
}

interface QuoteData {
  code: string;
  coupon_id: number | null;
  redeemable: boolean;
  reasons: string[];
  subtotal: number;
  eligible_subtotal: number;
  discount: number;
  total: number;
  lines: { product_key: string; amount: number; quantity: number; discount: number }[];
  scope?: 'this_agent';
}

function isQuote(data: unknown): data is QuoteData {
  const [code, redeemable, reasons, lines] = ['code', 'redeemable', 'reasons', 'lines'].map((name) =>
    member(data, name),
  );
  if (typeof code !== 'string' || typeof redeemable !== 'boolean') return false;
  if (!hasNumbers(data, ['subtotal', 'eligible_subtotal', 'discount', 'total'])) return false;
  return Array.isArray(reasons) && Array.isArray(lines) && lines.every(isLine);
}

function isLine(line: unknown): boolean {
  const isNamed = typeof member(line, 'product_key') === 'string';
  return isNamed && hasNumbers(line, ['amount', 'quantity', 'discount']);
}

function hasNumbers(data: unknown, names: readonly string[]): boolean {
  return names.every((name) => typeof member(data, name) === 'number');
}

/** Reads the `Retry-After` header in ms. Null: there is none, or it is a date. */
export function readRetryAfter(headers: Headers): number | null {
  const seconds = Number(headers['retry-after'] ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds * 1_000 : null;
}

/** Reads a problem response (RFC 9457). Null: the response does not come from Latchkey. */
export function readProblem({ status, headers, body }: ProblemResponse): ProblemDetails | null {
  const [code, title, detail] = ['code', 'title', 'detail'].map((name) => member(body, name));
  if (typeof code !== 'string' || typeof title !== 'string' || typeof detail !== 'string') return null;
  const requestId = member(body, 'request_id');
  return {
    code: code as ProblemCode,
    status,
    title,
    detail,
    requestId: typeof requestId === 'string' ? requestId : null,
    faults: list(member(body, 'errors')).map(readFault),
    reasons: list(member(body, 'reasons')).map(String),
    retryAfterMs: readRetryAfter(headers),
  };
}

type ProblemResponse = { readonly status: number; readonly headers: Headers; readonly body: unknown };

function readFault(fault: unknown): ParameterFault {
  const [parameter, code, detail] = ['parameter', 'code', 'detail'].map((name) => member(fault, name));
  return { parameter: String(parameter), code: String(code), detail: String(detail) };
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
