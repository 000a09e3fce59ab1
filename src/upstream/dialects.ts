import type { NotAppliedReason } from '../domain/outbox/outcome.ts';
import { type CompleteResponse, headerOf } from './exchange.ts';
import { type JsonObject, isHtml } from './wire.ts';

/** What a request asks for. */
export type RequestKind =
  | 'verify'
  | 'change'
  | 'activate'
  | 'createCoupon'
  | 'listCoupons'
  | 'getCoupon'
  | 'redeem'
  | 'voidRedemption'
  | 'probe'
  | 'ask'
  | 'listKeys';

/** A complete response, with its body if that is a JSON object. */
export type DialectResponse = Pick<CompleteResponse, 'status' | 'headers' | 'text'> & {
  body: JsonObject | null;
};

/** Why a request was certainly not applied, and a text for people. */
type DialectRefusal = { reason: NotAppliedReason; what: string };

/** How a store answers where the specification leaves it open. */
export type Dialect = {
  /** Understands a refusal of this dialect; null: the response is read as the specification says. */
  refusalOf(response: DialectResponse, request: RequestKind): DialectRefusal | null;
  /** Whether a response is an answer to be read although its status is not 2xx; absent: none is. */
  isAnswer?(response: DialectResponse, request: RequestKind): boolean;
  /** Whether a response without a body is an answer; absent: none is. */
  isEmptyAnswer?(response: Pick<DialectResponse, 'status'>): boolean;
};

/** The specification only. */
export const specification: Dialect = { refusalOf: () => null };

/** What a page proves for which `isChallenge()`. */
export const challenged = { reason: 'challenged', what: 'a firewall asks for proof of a human' } as const;

/** A page for people with the marks of the firewall. Without the marks, it may be anybody's page. */
export function isChallenge({ status, headers, text }: DialectResponse): boolean {
  if (status !== 403 || !isHtml(text)) return false;
  return (
    headerOf(headers, 'cf-mitigated') !== null || /^cloudflare\b/i.test(headerOf(headers, 'server') ?? '')
  );
}
