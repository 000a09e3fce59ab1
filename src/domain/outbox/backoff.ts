/** How long to wait between attempts, in ms (configuration `sync.backoff`). */
export type BackoffPolicy = { firstMs: number; maxMs: number };

/** The default of `sync.backoff`. */
export const defaultBackoffPolicy: BackoffPolicy = { firstMs: 1_000, maxMs: 15 * 60_000 };

/**
 * The wait before the next attempt: exponential with full jitter, the jitter applied after the cap.
 * `failures` counts from 1; `draw` is a random number in [0, 1).
 */
export function backoffMs(policy: BackoffPolicy, failures: number, draw: number): number {
  const ceiling = Math.min(policy.firstMs * 2 ** (Math.max(failures, 1) - 1), policy.maxMs);
  return Math.max(1, Math.round(ceiling * draw));
}
