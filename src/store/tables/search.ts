import { shownCharacters, shownPart } from '../../domain/license.ts';
import type { Search } from '../../domain/search.ts';
import type { Dialect } from '../sql.ts';

/** Whether the text of a parameter is in a license key or in one of the other columns. */
export function isFound(
  { contains, endOf }: Dialect,
  place: string,
  { keys, key, others }: { keys: Search['keys']; key: string; others: readonly string[] },
): string {
  const length = `length(${place}::text)`;
  const isShown = `(${key} = ${place} OR (${length} <= ${shownCharacters} AND ${length} * ${shownPart} <= length(${key})
    AND lower(${endOf(key, place)}) = lower(${place}::text)))`;
  const ofKey = keys === 'anywhere' ? contains(key, place) : isShown;
  return `(${[ofKey, ...others.map((column) => contains(column, place))].join(' OR ')})`;
}
