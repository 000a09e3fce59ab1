import type { Server } from 'node:net';
import type { Server as TlsServer } from 'node:tls';

/** Whether a server speaks TLS: told by what it can do, since `node:tls` takes 1 MiB, and few listen so. */
export function isTlsServer(server: Server): server is TlsServer {
  return 'setSecureContext' in server;
}
