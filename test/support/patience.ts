/**
 * How long a test waits for a condition, in ms. It only ends tests that hang: a busy machine takes twenty times as long
 * as an idle one. It is shorter than the timeout of a test (`test/vitest.config.ts`), so that the failure names the
 * condition.
 */
export const patienceMs: number = 100_000;

/** A longer limit for many steps in a row. */
export const longPatienceMs: number = 250_000;

/** Options for `vi.waitFor`, and for `expect.poll` with another interval. */
export const patience: { readonly timeout: number; readonly interval: number } = {
  timeout: patienceMs,
  interval: 20,
};
