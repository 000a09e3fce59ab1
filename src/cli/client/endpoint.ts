import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatAddress } from '../../config/address.ts';
import type { Location } from '../../config/location.ts';
import { distrustPort, distrustSocket } from './holder.ts';
import { listeners } from './wire.ts';

/** A way to the daemon. */
export type Endpoint =
  { readonly kind: 'socket'; readonly path: string } | { readonly kind: 'tcp'; readonly url: URL };

/** Lists the ways to the daemon: as it has announced them, else as they are configured; sockets first. */
export function findEndpoints(location: Location): readonly Endpoint[] {
  const { socket, tcp } = readAnnouncement(location.stateDir) ?? {
    socket: location.socket,
    tcp: location.tcp === null || location.tcp.port === 0 ? null : `http://${formatAddress(location.tcp)}`,
  };
  const url = tcp === null ? null : toReachable(tcp);
  return [
    ...(socket === null ? [] : [{ kind: 'socket', path: socket } as const]),
    ...(url === null ? [] : [{ kind: 'tcp', url } as const]),
  ];
}

/** Tells why the endpoint is not to be trusted with a token that these users know; `null`: it is. */
export function distrust(endpoint: Endpoint, knownTo: readonly number[]): string | null {
  return endpoint.kind === 'socket'
    ? distrustSocket(endpoint.path, knownTo)
    : distrustPort(endpoint.url, knownTo);
}

/** Writes an endpoint as people know it. */
export function formatEndpoint(endpoint: Endpoint): string {
  return endpoint.kind === 'socket' ? endpoint.path : endpoint.url.origin;
}

function readAnnouncement(stateDir: string): { socket: string | null; tcp: string | null } | null {
  try {
    const text = readFileSync(join(stateDir, 'listen.json'), 'utf8');
    return listeners.parse(JSON.parse(text));
  } catch {
    // Not there, not ours to read or half written: then the configuration has to do.
    return null;
  }
}

/** A daemon that listens on all addresses is called by loopback. */
function toReachable(address: string): URL | null {
  const url = URL.parse(address);
  if (url?.hostname === '0.0.0.0') url.hostname = '127.0.0.1';
  if (url?.hostname === '[::]') url.hostname = '[::1]';
  return url;
}
