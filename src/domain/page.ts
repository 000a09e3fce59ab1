/** How many rows of a list can be skipped at most. A list is read further by the cursor of each page. */
export const maxOffset = 10_000;

/** What a list is sorted by, of one of its rows. */
export type PageKey = readonly (string | number)[];

/** A stretch of a list: behind the row with a key, or from the beginning, without the first `offset` rows. */
export type Page = { limit: number; offset: number; cursor?: PageKey | undefined };

/** The same page with one row more, which tells whether others follow. */
export function withNext<Query extends Page>(page: Query): Query {
  return { ...page, limit: page.limit + 1 };
}
