import { once } from 'node:events';
import { createServer } from 'node:net';

/** Ports that no system gives away by itself, neither to who listens on any nor to who connects. */
const [first, last] = [12_000, 31_999];
/** One after the other, and so none twice: whoever was given one may listen on it only seconds later. */
let next = first + Math.floor(Math.random() * (last - first + 1));

/** A port of loopback that nobody listens on at this moment, and that nobody gets by chance after it. */
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
