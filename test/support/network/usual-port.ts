import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { patienceMs } from '../patience.ts';

/** In no directory, and gone with its process. */
const lock = '\0latchkey-tests-usual-port';

/**
 * Waits until no other test is about to use the port that daemons and programs have where nobody says another, and keeps
 * it from them until disposed of: between that it is free and that it is used, another could take it.
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
