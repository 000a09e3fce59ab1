/**
 * How long a test waits for what comes to be at some time, in ms. It only ends what hangs: a machine that is busy with
 * others takes twenty times as long as one that is not. Less than a test has (`test/vitest.config.ts`), so that what was
 * waited for is told.
 */
export const patienceMs: number = 100_000;

/** The same where many things come one after the other. */
export const longPatienceMs: number = 250_000;

/** The same for `vi.waitFor`, and for `expect.poll` where it is not by default. */
export const patience: { readonly timeout: number; readonly interval: number } = {
  timeout: patienceMs,
  interval: 20,
};
