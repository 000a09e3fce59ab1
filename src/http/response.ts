import { formatDatetime } from '../domain/time.ts';
import { provenanceHeaderNames as names } from '../domain/header-names.ts';
import type { Page, PageKey } from '../domain/page.ts';
import { done, failWith, type Result } from '../domain/problem/problem.ts';
import { type ListName, writeCursor } from '../wire/page.ts';
import type { RawParameters } from '../wire/parameters.ts';
import type { Digest } from '../service/ports.ts';
import type { Cacheable, Provenance } from '../service/services.ts';

/** A success: status, headers of its own, and the body. */
export type RouteResponse = {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: unknown;
  /** Absent: the same response must not be sent again. */
  cacheable?: CacheableLicense;
};

/**
 * The license key that the response depends on, as it is stored, and when the upstream confirmed the license (null on an
 * authority).
 */
export type CacheableLicense = Cacheable & { licenseKey: string; confirmedAt: number | null };

type Headers = RouteResponse['headers'];

/** The status of a request whose caller disconnected before the response, as nginx logs it. */
export const unanswered = 499;

/** 200 with `{"data": …}` (specification 4). */
export function ok(data: unknown, headers: Headers = {}): { ok: true; value: RouteResponse } {
  return done({ status: 200, headers, body: { data } });
}

/** 200 with `{"data": …}` and a strong ETag, or 304 if the caller has the same body already (RFC 9110 section 13.1.2). */
export function okUnlessSame(
  data: unknown,
  ifNoneMatch: string,
  digest: Digest,
): { ok: true; value: RouteResponse } {
  const body = JSON.stringify({ data });
  const tag = `"${digest(body).slice(0, 32)}"`;
  const isSame = ifNoneMatch.split(',').some((each) => each.trim().replace(/^W\//, '') === tag);
  if (isSame || ifNoneMatch.trim() === '*') {
    return done({ status: 304, headers: { ETag: tag }, body: undefined });
  }
  return done({
    status: 200,
    headers: { ETag: tag, 'Content-Type': 'application/json; charset=utf-8' },
    body,
  });
}

/** 201 with `{"data": …}`. */
export function created(data: unknown, headers: Headers = {}): { ok: true; value: RouteResponse } {
  return done({ status: 201, headers, body: { data } });
}

/** 202 with `{"data": …}`: it is done after the response. */
export function accepted(data: unknown): { ok: true; value: RouteResponse } {
  return done({ status: 202, headers: {}, body: { data } });
}

/** 204 without a body. */
export function noContent(): { ok: true; value: RouteResponse } {
  return done({ status: 204, headers: {}, body: undefined });
}

/** The change is committed, but its result cannot be read for the response. */
export function responseUnreadable(): Result<never> {
  return failWith('internal_error', 'The change was made, but its result cannot be read.');
}

/** A body without `data` around it. */
export function bare(status: number, body: unknown): { ok: true; value: RouteResponse } {
  return done({ status, headers: {}, body });
}

/** A page of a list as it was read. */
type ReadPage<Item> = {
  list: ListName;
  /** The rows of `withNext`: one more than the page has if there is a next page. */
  rows: readonly Item[];
  /** Null: there are more than were counted. */
  total: number | null;
  keyOf: (item: Item) => PageKey;
};

/** The rows of a page, and its headers: the total, and the link to the next page, if any (RFC 8288). */
export function pageOf<Item>(
  { list, rows, total, keyOf }: ReadPage<Item>,
  { limit }: Page,
  { path, query }: { path: string; query: RawParameters },
): { items: readonly Item[]; headers: Headers } {
  const items = rows.slice(0, limit);
  const last = rows.length > limit ? items.at(-1) : undefined;
  const headers: Headers = total === null ? {} : { 'X-Total-Count': String(total) };
  if (last === undefined) return { items, headers };
  const others = [...query].filter(([name]) => name !== 'offset');
  const next = new URLSearchParams(others.map(([name, value]): [string, string] => [name, String(value)]));
  next.set('limit', String(limit));
  next.set('cursor', writeCursor(list, keyOf(last)));
  return { items, headers: { ...headers, Link: `<${path}?${next.toString()}>; rel="next"` } };
}

/** A list without rows. */
export function emptyList(list: ListName): { ok: true; value: RouteResponse } {
  return ok({ [list]: [] }, { 'X-Total-Count': '0' });
}

/** The headers with the origin and age of a response (src/http/README.md, Agent headers). */
export function provenanceHeaders(provenance: Provenance): Record<string, string> {
  const headers: Record<string, string> = { [names.freshness]: provenance.freshness };
  // An authority has no cache, so the other headers do not apply.
  if (!('pending' in provenance)) return headers;
  const { confirmedAt, graceUntil, pending, cache, ageMs } = provenance;
  if (confirmedAt !== null) headers[names.confirmedAt] = formatDatetime(confirmedAt);
  if (graceUntil !== null) headers[names.graceUntil] = formatDatetime(graceUntil);
  headers[names.pending] = String(pending);
  headers['Age'] = presentAge(ageMs);
  headers['Cache-Status'] = cache === 'hit' ? 'latchkey; hit' : 'latchkey; fwd=miss';
  return headers;
}

/** The value of `Age`: whole seconds. */
export function presentAge(ageMs: number): string {
  return String(Math.max(0, Math.floor(ageMs / 1000)));
}
