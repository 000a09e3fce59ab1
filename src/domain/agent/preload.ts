/** A license key to be fetched ahead of any caller; `productKey`: the id of a product; null: of any of the configured products. */
export type PreloadKey = { licenseKey: string; productKey: string | null };

/** What came of asking for a license key. */
export type PreloadOutcome = { licenseKey: string; found: 'found' | 'missing' | 'unreachable' };

/** How many license keys were fetched, are not known to the upstream, and are still to be fetched. */
export type PreloadProgress = { done: number; failed: number; left: number };

/** The most keys that are left at a time. */
export const preloadLimit = 100_000;
