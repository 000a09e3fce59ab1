import { once } from 'node:events';
import { createServer } from 'node:net';

const firstPort = 8787;
const portsTried = 10;

/** The default address, or the next one that is free and whose port is not `reserved`. */
export async function chooseAddress(reserved: readonly number[] = []): Promise<string> {
  const tried = Array.from({ length: portsTried }, (_, index) => firstPort + index);
  const ports = tried.filter((port) => !reserved.includes(port));
  for (const port of ports) if (await isFree(port)) return `127.0.0.1:${port}`;
  return `127.0.0.1:${ports[0] ?? firstPort}`;
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}
