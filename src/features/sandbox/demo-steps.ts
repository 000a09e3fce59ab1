import { setTimeout as sleep } from 'node:timers/promises';

/** How long a step may take, in ms. */
const timeoutMs = 15_000;

/** The configuration of the agent in a demo: as in daily use, but faster. */
export const demoConfiguration = {
  upstream: { timeout: '2s', probe: '1s' },
  freshness: { refresh: '500ms' },
  sync: {
    rate: '100',
    reconcile_after: '2s',
    backoff: { first: '100ms', max: '1s' },
    breaker: { open: '500ms' },
  },
};

/** Plays the steps of a demo, and prints whether all succeeded. Returns an exit code. */
export async function printSteps(play: () => Promise<void>, print: (line: string) => void): Promise<number> {
  try {
    await play();
    print('Every step succeeded.');
    return 0;
  } catch (error) {
    print(`FAILED: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  }
}

/** Waits until something holds. Rejects if that takes too long. */
export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs / 1000} s: ${what}`);
    await sleep(50);
  }
}
