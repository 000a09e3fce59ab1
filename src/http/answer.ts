import { done } from '../domain/problem.ts';
import type { Page } from '../service/tables.ts';
import type { RawParameters } from './wire/parameters.ts';

/** A success: its status, headers besides those of HTTP itself, and the JSON body. */
export type Answer = { status: number; headers: Readonly<Record<string, string>>; body: unknown };

type Headers = Answer['headers'];

/** 200 with `{"data": …}` (specification 4). */
export function found(data: unknown, headers: Headers = {}): { ok: true; value: Answer } {
  return done({ status: 200, headers, body: { data } });
}

/** 201 with `{"data": …}`. */
export function made(data: unknown, headers: Headers = {}): { ok: true; value: Answer } {
  return done({ status: 201, headers, body: { data } });
}

/** A body as it is, without `data`. */
export function bare(status: number, body: unknown): { ok: true; value: Answer } {
  return done({ status, headers: {}, body });
}

/** How many there are in all, and where the next ones are while more follow (RFC 8288). */
export function listHeaders(
  total: number,
  { limit, offset }: Page,
  { path, query }: { path: string; query: RawParameters },
): Headers {
  const next = offset + limit;
  if (next >= total) return { 'X-Total-Count': String(total) };
  const same = [...query].map(([name, value]): [string, string] => [name, String(value)]);
  const link = new URLSearchParams(same);
  link.set('limit', String(limit));
  link.set('offset', String(next));
  return { 'X-Total-Count': String(total), Link: `<${path}?${link.toString()}>; rel="next"` };
}
