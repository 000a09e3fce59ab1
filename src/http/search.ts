import { licenseKeysIn } from '../domain/license.ts';
import { maxFound, type Search, type Searched } from '../domain/search.ts';
import type { Awaitable } from '../service/tables.ts';

/** The filter of a list whose text is searched. */
export function searchFor<Query extends { search?: string | undefined }>(
  { search: text, ...others }: Query,
  keys: Search['keys'],
): Omit<Query, 'search'> & Searched {
  return { ...others, ...(text !== undefined && { search: { text, keys } }) };
}

/** Searches for the text as sent, or else for the license key that was most likely issued. */
export async function inStoredSpelling<Filter extends Searched>(
  filter: Filter,
  count: (filter: Filter) => Awaitable<number>,
): Promise<{ filter: Filter; total: number }> {
  const total = await count(filter);
  const { search } = filter;
  if (total > 0 || search === undefined) return { filter, total };
  for (const text of licenseKeysIn(search.text)) {
    const found = { ...filter, search: { ...search, text } };
    const foundTotal = text === search.text ? 0 : await count(found);
    if (foundTotal > 0) return { filter: found, total: foundTotal };
  }
  return { filter, total };
}

/** The length of a list; null if it was searched, and has more than is counted. */
export function lengthOf({ search }: Searched, total: number): number | null {
  return search !== undefined && total > maxFound ? null : total;
}
