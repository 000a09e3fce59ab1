import { once } from 'node:events';
import { createServer } from 'node:net';

/** Ports that no system gives away by itself, neither to who listens on any nor to who connects. */
const [first, last] = [12_000, 31_999];

/** A port of loopback that nobody listens on at this moment, and that nobody gets by chance after it. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = first + Math.floor(Math.random() * (last - first + 1));
    const server = createServer();
    try {
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') continue;
      throw error;
    }
    server.close();
    await once(server, 'close');
    return port;
  }
}
