import { once } from 'node:events';
import { createServer } from 'node:net';

/** Ports outside the range from which systems assign ports to listeners and clients. */
const [first, last] = [12_000, 31_999];
/** Ports are returned in order and never twice, because a test may listen on its port only seconds later. */
let next = first + Math.floor(Math.random() * (last - first + 1));

/** An unused loopback port that the system does not assign to another program. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = next;
    next = port === last ? first : port + 1;
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
