import { done, refuse, type Result } from '../domain/problem/problem.ts';
import type { Page, PageKey } from '../domain/page.ts';
import type { Repeat } from '../service/answers.ts';
import { writeCursor, type ListName } from '../wire/page.ts';
import type { RawParameters } from '../wire/parameters.ts';

/** A success: status, headers of its own, and the body. */
export type Answer = {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: unknown;
  /** That of a license the same may be answered again; absent: it may not. */
  repeat?: RepeatedLicense;
};

/** An answer that may be given again. */
export type RepeatableAnswer = Answer & { repeat: RepeatedLicense };

/** Of which license, under its own spelling, and when the upstream confirmed it (null: this is the authority). */
export type RepeatedLicense = Repeat & { licenseKey: string; confirmedAt: number | null };

type Headers = Answer['headers'];

/** What a request counts as whose caller left before the answer, or got none; the status that nginx logs then. */
export const unanswered = 499;

/** 200 with `{"data": …}` (specification 4). */
export function found(data: unknown, headers: Headers = {}): { ok: true; value: Answer } {
  return done({ status: 200, headers, body: { data } });
}

/** 201 with `{"data": …}`. */
export function made(data: unknown, headers: Headers = {}): { ok: true; value: Answer } {
  return done({ status: 201, headers, body: { data } });
}

/** 204: done, and there is nothing to say. */
export function nothing(): { ok: true; value: Answer } {
  return done({ status: 204, headers: {}, body: undefined });
}

/** The change is committed, and what the answer would show of it cannot be read. */
export function madeUnread(): Result<never> {
  return refuse('internal_error', 'The change was made, but what came of it cannot be read.');
}

/** A body without `data` around it. */
export function bare(status: number, body: unknown): { ok: true; value: Answer } {
  return done({ status, headers: {}, body });
}

/** What was read of a list. */
type ReadPage<Item> = {
  list: ListName;
  /** Those of `withNext`: one more than the page holds where others follow. */
  rows: readonly Item[];
  total: number;
  keyOf: (item: Item) => PageKey;
};

/** The rows of a page, and its headers: the total, and the link to the next page while there is one (RFC 8288). */
export function pageOf<Item>(
  { list, rows, total, keyOf }: ReadPage<Item>,
  { limit }: Page,
  { path, query }: { path: string; query: RawParameters },
): { items: readonly Item[]; headers: Headers } {
  const items = rows.slice(0, limit);
  const last = rows.length > limit ? items.at(-1) : undefined;
  const headers = { 'X-Total-Count': String(total) };
  if (last === undefined) return { items, headers };
  const others = [...query].filter(([name]) => name !== 'offset');
  const next = new URLSearchParams(others.map(([name, value]): [string, string] => [name, String(value)]));
  next.set('limit', String(limit));
  next.set('cursor', writeCursor(list, keyOf(last)));
  return { items, headers: { ...headers, Link: `<${path}?${next.toString()}>; rel="next"` } };
}

/** A list without rows. */
export function emptyList(list: ListName): { ok: true; value: Answer } {
  return found({ [list]: [] }, { 'X-Total-Count': '0' });
}
