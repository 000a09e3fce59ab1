import { headerOf } from '../exchange.ts';
import { isHtml } from '../json.ts';
import { readReadableCoupons } from '../wire.ts';
import type { Dialect, DialectAnswer, RequestKind } from './dialect.ts';

/** What asks about one thing, which may not be there. */
const asksForOne: ReadonlySet<RequestKind> = new Set<RequestKind>(['verify', 'change', 'getCoupon']);

/** A store that says "unknown" by 400 or by an empty 200, behind a firewall (src/sync/README.md, What a response proves). */
export const payhip: Dialect = {
  refusalOf(answer, request) {
    if (isChallenge(answer)) return { reason: 'challenged', what: 'a firewall asks for a proof' };
    if (isUnknown(answer, request)) return { reason: 'missing', what: 'the store does not know it' };
    return null;
  },
  readCoupons: readReadableCoupons,
};

/** A page for people with the marks of the firewall that made it. Without them nobody can tell whose page it is. */
function isChallenge({ status, headers, text }: DialectAnswer): boolean {
  if (status !== 403 || !isHtml(text)) return false;
  return (
    headerOf(headers, 'cf-mitigated') !== null || /^cloudflare\b/i.test(headerOf(headers, 'server') ?? '')
  );
}

/** A 200 to a change without a license in it does not say whether it was applied. */
function isUnknown({ status, text, body }: DialectAnswer, request: RequestKind): boolean {
  if (status === 400) {
    // Latchkey itself leaves `data` out (src/http/README.md, Dialects).
    const isEmpty = body !== null && (!('data' in body) || hasEmptyData(body));
    return asksForOne.has(request) && body?.['error'] === true && isEmpty;
  }
  return status === 200 && request === 'verify' && (text.trim() === '' || hasEmptyData(body));
}

function hasEmptyData(body: DialectAnswer['body']): boolean {
  if (body === null || !('data' in body)) return false;
  const { data } = body;
  return data === null || data === '' || (typeof data === 'object' && Object.keys(data).length === 0);
}
