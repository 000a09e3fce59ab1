import type { NotAppliedReason } from '../domain/outbox/outcome.ts';
import { type CompleteResponse, headerOf } from './exchange.ts';
import type { DialectName } from '../domain/header-names.ts';
import { type JsonObject, isHtml } from './wire.ts';

/** What a request asks for. */
export type RequestKind =
  | 'verify'
  | 'change'
  | 'createCoupon'
  | 'listCoupons'
  | 'getCoupon'
  | 'redeem'
  | 'voidRedemption'
  | 'probe'
  | 'ask';

/** A complete response, with its body if that is a JSON object. */
type DialectResponse = Pick<CompleteResponse, 'status' | 'headers' | 'text'> & { body: JsonObject | null };

/** Why a request was certainly not applied, and a text for people. */
type DialectRefusal = { reason: NotAppliedReason; what: string };

/** How a store answers where the specification leaves it open. */
export type Dialect = {
  /** Understands a refusal of this dialect; null: the response is read as the specification says. */
  refusalOf(response: DialectResponse, request: RequestKind): DialectRefusal | null;
};

/** Requests about one thing that may not exist. */
const asksForOne: ReadonlySet<RequestKind> = new Set<RequestKind>(['verify', 'change', 'getCoupon']);

/**
 * A store behind a firewall that says "unknown" with 400 or an empty 200 (src/sync/PLAIN-UPSTREAM.md, What a response proves).
 */
const payhip: Dialect = {
  refusalOf(response, request) {
    if (isChallenge(response)) return { reason: 'challenged', what: 'a firewall asks for proof of a human' };
    if (saysUnknown(response, request)) return { reason: 'missing', what: 'the store does not know it' };
    return null;
  },
};

/** A page for people with the marks of the firewall. Without the marks, it may be anybody's page. */
function isChallenge({ status, headers, text }: DialectResponse): boolean {
  if (status !== 403 || !isHtml(text)) return false;
  return (
    headerOf(headers, 'cf-mitigated') !== null || /^cloudflare\b/i.test(headerOf(headers, 'server') ?? '')
  );
}

/** A 200 to a change that contains no license does not say whether the change was applied. */
function saysUnknown({ status, text, body }: DialectResponse, request: RequestKind): boolean {
  if (status === 400) {
    // Latchkey itself leaves `data` out (src/http/README.md, Dialects).
    const isEmpty = body !== null && (!('data' in body) || hasEmptyData(body));
    return asksForOne.has(request) && body?.['error'] === true && isEmpty;
  }
  return status === 200 && request === 'verify' && (text.trim() === '' || hasEmptyData(body));
}

function hasEmptyData(body: DialectResponse['body']): boolean {
  if (body === null || !('data' in body)) return false;
  const { data } = body;
  return data === null || data === '' || (typeof data === 'object' && Object.keys(data).length === 0);
}

/** The specification only. */
const specification: Dialect = { refusalOf: () => null };

/** The dialects by their names in the setting `upstream.dialect`. */
export const dialects: Readonly<Record<DialectName, Dialect>> = { specification, payhip };
