/** A license key to fetch before a caller asks for it. `productId`: the id of a product; null: any configured product. */
export type PreloadKey = { licenseKey: string; productId: string | null };

/** The result of fetching one license key. */
export type PreloadOutcome = { licenseKey: string; found: 'found' | 'missing' | 'unreachable' };

/** How many license keys were fetched, are unknown to the upstream (`failed`), and are still to be fetched. */
export type PreloadProgress = { done: number; failed: number; left: number };

/** A page of the license keys that a store has sold. `next` names the next page; null: there is none. */
export type KeyPage = { licenseKeys: readonly string[]; next: string | null };

/** The maximum number of keys that wait to be fetched. */
export const maxPreloadKeys = 100_000;
