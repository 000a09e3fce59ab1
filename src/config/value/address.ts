import { BlockList, isIP } from 'node:net';

/** Where to listen on TCP; an IPv6 host has no brackets, port 0 means any free port. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Where to connect to; an IPv6 host has no brackets; port null means the usual port. */
export interface Destination {
  readonly host: string;
  readonly port: number | null;
}

/** Reads `127.0.0.1:8787`, `localhost:8787` or `[::1]:8787`. */
export function parseAddress(text: string): Address | undefined {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([\w.-]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host === undefined || port > 65_535) return undefined;
  return bracketed === undefined || isIP(bracketed) === 6 ? { host: host.toLowerCase(), port } : undefined;
}

export function formatAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Reads an address or a name, with a port or without one: `203.0.113.7`, `[2001:db8::7]:443`, `store.internal`. */
export function parseDestination(text: string): Destination | undefined {
  const host = parseHost(text);
  if (host !== undefined) return { host, port: null };
  const address = parseAddress(text);
  return address?.port === 0 ? undefined : address;
}

export function formatDestination({ host, port }: Destination): string {
  return port === null ? host : formatAddress({ host, port });
}

/** The addresses whose first `prefix` bits are those of `address`. */
export interface AddressRange {
  readonly address: string;
  readonly prefix: number;
}

/** Reads `10.0.0.0/8` or `2001:db8::/32`; a single address is a range, too. */
export function parseRange(text: string): AddressRange | undefined {
  const [, address = '', digits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = isIP(address);
  const bits = version === 4 ? 32 : 128;
  const prefix = Number(digits ?? bits);
  return version === 0 || prefix > bits || address.includes('%') ? undefined : { address, prefix };
}

export function formatRange({ address, prefix }: AddressRange): string {
  return `${address}/${prefix}`;
}

/** Whether only this machine can reach the host; the only name that counts is `localhost`. */
export function isLoopback(host: string): boolean {
  const version = isIP(host);
  return version === 0 ? host === 'localhost' : loopback.check(host, version === 4 ? 'ipv4' : 'ipv6');
}

/** The host of a URL; an IPv6 address has no brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

/** Whether requests to a URL leave this machine without encryption. */
export function isPlainToOthers(url: URL): boolean {
  return url.protocol === 'http:' && !isLoopback(hostOf(url));
}

/** Reads a host without scheme, port or path, in lower case, an IPv6 address also in brackets. */
export function parseHost(text: string): string | undefined {
  const bare = text.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  return isIP(bare) === 6 || /^[\w.-]+$/.test(bare) ? bare : undefined;
}
