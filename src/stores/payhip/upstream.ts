import {
  challenged,
  isChallenge,
  type Dialect,
  type DialectResponse,
  type RequestKind,
} from '../../upstream/dialects.ts';

/** Requests about one thing that may not exist. */
const asksForOne: ReadonlySet<RequestKind> = new Set<RequestKind>(['verify', 'change', 'getCoupon']);

/**
 * A store behind a firewall that says "unknown" with 400 or an empty 200 (src/sync/PLAIN-UPSTREAM.md, What a response proves).
 */
export const received: Dialect = {
  refusalOf(response, request) {
    if (isChallenge(response)) return challenged;
    if (saysUnknown(response, request)) return { reason: 'missing', what: 'the store does not know it' };
    return null;
  },
};

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
