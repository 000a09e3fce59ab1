import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { patienceMs } from '../patience.ts';

/** An abstract socket, which is in no directory and ends with its process. */
const lock = '\0latchkey-tests-usual-port';

/**
 * Reserves the default port of daemons and programs for this test, until disposed. Waits for other tests that
 * have reserved it.
 */
export async function takeUsualPort(): Promise<AsyncDisposable> {
  const server = createServer();
  const begun = performance.now();
  for (;;) {
    try {
      await once(server.listen(lock), 'listening');
      return { [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
    } catch (error) {
      if (performance.now() - begun > patienceMs) throw error;
      await sleep(50);
    }
  }
}
