import type { Page, PageKey } from '../../../domain/page.ts';

/** The key after which a page starts, in a list sorted by text. No key is empty. */
export function afterText({ cursor }: Page): string {
  return String(cursor?.[0] ?? '');
}

/** The key after which a page starts, in a list sorted by a number. */
export function afterNumber({ cursor }: Page): number {
  return Number(cursor?.[0] ?? Number.MIN_SAFE_INTEGER);
}

/**
 * The key below which a page starts, in a list sorted by instant and id, the latest first. The filter and the cursor make
 * a single bound, because SQLite searches an index by one bound only. `before`: the first instant that is not listed;
 * `least`: less than any id.
 */
export function beforeInstant<Id extends string | number>(
  cursor: PageKey | undefined,
  before: number,
  least: Id,
): [at: number, id: Id] {
  const [at, id] = (cursor ?? [before, least]) as [number, Id];
  return at < before ? [at, id] : [before, least];
}
