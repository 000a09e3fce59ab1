import { once } from 'node:events';
import { createServer } from 'node:net';

/** Ports that no system gives away by itself, neither to who listens on any nor to who connects. */
const [first, last] = [12_000, 31_999];
/** Ports are given in order, so none is given twice: a test may listen on its port only seconds later. */
let next = first + Math.floor(Math.random() * (last - first + 1));

/** A loopback port on which nothing listens, and which the system gives to no other program by chance. */
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
