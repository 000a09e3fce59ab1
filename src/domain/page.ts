/** The maximum offset in a list. Clients read further with the cursor of each page. */
export const maxOffset = 10_000;

/** The values of one row in the columns that sort the list. */
export type PageKey = readonly (string | number)[];

/** A page of a list: starts after the row `cursor`, or at the beginning, and skips `offset` rows. */
export type Page = { limit: number; offset: number; cursor?: PageKey | undefined };

/** The page plus one more row, which shows whether there is a next page. */
export function withNext<Query extends Page>(page: Query): Query {
  return { ...page, limit: page.limit + 1 };
}
