import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Metrics } from '../../src/daemon/metrics.ts';
import { authorityStanding } from '../support/http-app.ts';

/** Lets the event loop turn for so many ms: its delay is measured every 20 ms. */
async function spin(ms: number): Promise<void> {
  const until = performance.now() + ms;
  while (performance.now() < until) await turn();
}

test('how long the event loop was held up is measured', async () => {
  using metrics = new Metrics({ role: 'authority', isSecure: false, hasDatabase: false });
  // The first measure after a scrape is lost, so that on a busy machine one time is not enough.
  const lagAfterHold = async (): Promise<number> => {
    await spin(60);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
    await spin(60);
    const text = await metrics.expose(authorityStanding);
    return Number(/^latchkey_event_loop_lag_seconds (\S+)$/m.exec(text)?.[1]);
  };
  await expect.poll(lagAfterHold, { timeout: 30_000 }).toBeGreaterThan(0.15);
});
