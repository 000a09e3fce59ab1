import { maxFound, minSearched, type Search } from '../../../domain/search.ts';
import { isFound } from '../../tables/search.ts';
import { dialect, type SqliteSql } from '../statements.ts';

/** More of them would hardly find less. */
const maxParts = 16;

/** The text for MATCH: the characters of a text, three at a time. */
function partsOf(text: string): string {
  const characters = Array.from(text);
  const last = characters.length - minSearched;
  const starts = Array.from({ length: Math.ceil(characters.length / minSearched) }, (_, index) =>
    Math.min(index * minSearched, last),
  );
  const parts = starts.slice(0, maxParts).map((at) => characters.slice(at, at + minSearched).join(''));
  return parts.map((part) => `"${part.replaceAll('"', '""')}"`).join(' AND ');
}

/** The values of the parameters for the text and for its parts, which follow each other. */
export function searchParameters({ text }: Search): [text: string, parts: string] {
  return [text, partsOf(text)];
}

/** A table `candidate` with the keys of all licenses that a search may find. */
export function candidates(parts: number): string {
  return `WITH candidate (found_key) AS (
    SELECT license_key FROM license_search CROSS JOIN license_number ON number = license_search.rowid
      WHERE license_search MATCH $${parts}
    UNION ALL SELECT license_key FROM license_number WHERE number > (SELECT number FROM license_search_end)
  )`;
}

/** The same by reading every license. */
export function candidatesAmongAll(text: number, keys: Search['keys']): string {
  return `WITH candidate (found_key) AS (SELECT license_key FROM license WHERE ${isLicenseFound(text, keys)})`;
}

/** Whether a license is found by the parameter with this number. */
export function isLicenseFound(text: number, keys: Search['keys']): string {
  const [key, email] = ['license.license_key', 'license.buyer_email'];
  return isFound(dialect, `$${text}`, { keys, key, others: [email] });
}

/** Whether there are so many candidates that a scan in the order of the list soon finds enough. */
export function hasManyIn(sql: SqliteSql): (search: Search) => boolean {
  const last = '(SELECT coalesce(max(number), 0) FROM license_number)';
  const count = sql.count(`SELECT ${last} - (SELECT number FROM license_search_end) + (SELECT count(*) FROM (
    SELECT 1 FROM license_search WHERE license_search MATCH $1 LIMIT ${maxFound + 1})) AS count`);
  return ({ text }) => count(partsOf(text)) > maxFound;
}

/** Whether a search finds many licenses. Reads all of them until it has. */
export function findsManyIn(sql: SqliteSql): (search: Search) => boolean {
  const counted = (keys: Search['keys']) =>
    sql.count(`SELECT count(*) AS count FROM (
      SELECT 1 FROM license WHERE ${isLicenseFound(1, keys)} LIMIT ${maxFound + 1})`);
  const counts = { anywhere: counted('anywhere'), shown: counted('shown') };
  return ({ keys, text }) => counts[keys](text) > maxFound;
}
