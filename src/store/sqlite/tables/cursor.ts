import type { Page, PageKey } from '../../../domain/page.ts';

/** The key behind which a list sorted by text begins: no key is empty. */
export function afterText({ cursor }: Page): string {
  return String(cursor?.[0] ?? '');
}

/** The key behind which a list sorted by a number begins. */
export function afterNumber({ cursor }: Page): number {
  return Number(cursor?.[0] ?? Number.MIN_SAFE_INTEGER);
}

/**
 * The key before which a list ends that is sorted by an instant and an id, the latest first. Both bounds are one, since
 * SQLite searches an index by one of them only. `before`: the first instant that is not listed; `least`: less than any id.
 */
export function beforeInstant<Id extends string | number>(
  cursor: PageKey | undefined,
  before: number,
  least: Id,
): [at: number, id: Id] {
  const [at, id] = (cursor ?? [before, least]) as [number, Id];
  return at < before ? [at, id] : [before, least];
}
