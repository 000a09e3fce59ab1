import type { LookupAddress } from 'node:dns';
import { BlockList, isIP } from 'node:net';
import { done, failWithFaults, type Result } from '../../domain/problem/problem.ts';

/** A range of addresses: those whose first `prefix` bits are those of `address`. */
export type AddressRange = { address: string; prefix: number };

/** Where to connect to: the addresses that the name had when it was checked. */
export type Destination = { url: URL; addresses: readonly LookupAddress[] };

export type AddressParts = {
  /** `webhooks.out.allow`. */
  allow: () => readonly AddressRange[];
  /** The addresses of this machine. */
  own: () => readonly string[];
  /** Rejects if the name has no address. */
  resolve: (host: string) => Promise<readonly LookupAddress[]>;
};

/** The IPv4 addresses that are not on the internet, and those of the metadata services of clouds. */
const notPublic = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
];
/** The IPv6 addresses that are on the internet, and those among them that are not: protocols, 6to4, examples. */
const public6 = ['2000::/3'];
const notPublic6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'];

const refused4 = listOf(notPublic.map(rangeOf));
const global6 = listOf(public6.map(rangeOf));
const refused6 = listOf(notPublic6.map(rangeOf));

function rangeOf(text: string): AddressRange {
  const [address = '', prefix] = text.split('/');
  return { address, prefix: Number(prefix) };
}

function listOf(ranges: readonly AddressRange[]): BlockList {
  const list = new BlockList();
  for (const { address, prefix } of ranges) list.addSubnet(address, prefix, familyOf(address));
  return list;
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 4 ? 'ipv4' : 'ipv6';
}

/** Whether an address is on the internet. IPv4 addresses in IPv6 notation, NAT64 and Teredo are not. */
export function isPublic(address: string): boolean {
  if (familyOf(address) === 'ipv4') return !refused4.check(address, 'ipv4');
  return global6.check(address, 'ipv6') && !refused6.check(address, 'ipv6');
}

/**
 * Finds the addresses of a URL and checks all of them. Refuses addresses of this machine, of private networks and of
 * metadata services, and plain HTTP, unless `webhooks.out.allow` names the address. Connect to these addresses only: the
 * name may have others a moment later.
 */
export async function findDestination(text: string, parts: AddressParts): Promise<Result<Destination>> {
  const url = new URL(text);
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  let addresses: readonly LookupAddress[];
  try {
    addresses = isIP(host) === 0 ? await parts.resolve(host) : [{ address: host, family: isIP(host) }];
  } catch {
    return refuse(`the name ${host} has no address`);
  }
  if (addresses.length === 0) return refuse(`the name ${host} has no address`);
  const allowed = listOf(parts.allow());
  const own = new Set(parts.own());
  for (const { address: found } of addresses) {
    // Without the zone of an IPv6 address.
    const [address = ''] = found.split('%');
    if (allowed.check(address, familyOf(address))) continue;
    if (url.protocol === 'http:') {
      return refuse(`${address} is not in webhooks.out.allow, and plain http is only for addresses there`);
    }
    if (own.has(address))
      return refuse(`${address} is an address of this machine, and not in webhooks.out.allow`);
    if (!isPublic(address)) {
      return refuse(`${address} is not an address on the internet, and not in webhooks.out.allow`);
    }
  }
  return done({ url, addresses });
}

function refuse(detail: string): ReturnType<typeof failWithFaults> {
  return failWithFaults([{ parameter: 'url', code: 'address_refused', detail }]);
}
