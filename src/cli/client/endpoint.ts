import { z } from 'zod';
import { distrustPort, distrustSocket } from './listener-owner.ts';
import { readStateFile } from './state-file.ts';

/** An address of the daemon. `certificate` (PEM): the only one that is trusted there; null for plain HTTP. */
export type Endpoint =
  | { readonly kind: 'socket'; readonly path: string }
  | { readonly kind: 'tcp'; readonly url: URL; readonly certificate: string | null };

/** The daemon of a state directory: its instance id and its addresses, the socket first. */
export interface DaemonAddress {
  readonly instance: string;
  readonly endpoints: readonly Endpoint[];
}

/** Where the daemon listens, or why that is not known. `isAbsent`: there is no `listen.json`. */
export type AddressResult =
  | { readonly ok: true; readonly address: DaemonAddress }
  | { readonly ok: false; readonly isAbsent: boolean; readonly lines: readonly string[] };

/** Advice for a daemon whose files or responses cannot be read. */
export const otherVersion: string =
  'the daemon may be running another version. After an upgrade, restart it.';

/** `listen.json`: the daemon writes it when it listens and removes it when it stops. */
const listenFile = z.object({
  tcp: z.string().nullable(),
  socket: z.string().nullable(),
  /** The certificate of `tcp`, if it uses TLS. */
  certificate: z.string().optional(),
  instance: z.string(),
});

/**
 * Reads where the daemon of a state directory listens.
 *
 * The configured address is not used: the daemon of another directory may listen there.
 */
export function readAddress(stateDir: string): AddressResult {
  const file = readStateFile(stateDir, 'listen.json');
  if (!file.ok) return file;
  const read = listenFile.safeParse(parse(file.text));
  if (!read.success) {
    const line = `latchkey: ${file.path} cannot be read: ${otherVersion}`;
    return { ok: false, isAbsent: false, lines: [line] };
  }
  const { tcp, socket, certificate = null, instance } = read.data;
  const url = tcp === null ? null : toReachable(tcp);
  const endpoints: Endpoint[] = [];
  if (socket !== null) endpoints.push({ kind: 'socket', path: socket });
  if (url !== null) endpoints.push({ kind: 'tcp', url, certificate });
  return { ok: true, address: { instance, endpoints } };
}

/** The instance id of the daemon that listens for a state directory, or was killed; null if it is not known. */
export function instanceOf(stateDir: string): string | null {
  const read = readAddress(stateDir);
  return read.ok ? read.address.instance : null;
}

/** Why the token must not be sent to the endpoint, or null. `knownTo`: users who can read the token anyway. */
export function distrust(endpoint: Endpoint, knownTo: readonly number[]): string | null {
  return endpoint.kind === 'socket'
    ? distrustSocket(endpoint.path, knownTo)
    : distrustPort(endpoint.url, knownTo);
}

export function formatEndpoint(endpoint: Endpoint): string {
  return endpoint.kind === 'socket' ? endpoint.path : endpoint.url.origin;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A daemon that listens on all addresses is called on the loopback address. */
function toReachable(address: string): URL | null {
  const url = URL.parse(address);
  if (url?.hostname === '0.0.0.0') url.hostname = '127.0.0.1';
  if (url?.hostname === '[::]') url.hostname = '[::1]';
  return url;
}
