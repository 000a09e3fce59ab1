import { BlockList, isIP } from 'node:net';

/** The proxies in front of a listener. */
export class Proxies {
  readonly #ranges = new BlockList();

  constructor(ranges: readonly { address: string; prefix: number }[]) {
    for (const { address, prefix } of ranges) this.#ranges.addSubnet(address, prefix, familyOf(address));
  }

  /**
   * The address of the client of a request: that of the connection or, if that is a proxy, the last address of
   * `X-Forwarded-For` that is not a proxy. Each proxy adds the address of its own client at the end. What is further to
   * the left can be forged.
   */
  clientOf(peer: string, forwardedFor: readonly string[]): string {
    let client = plainAddress(peer) ?? peer;
    const entries = forwardedFor.flatMap((value) => value.split(','));
    for (const entry of entries.toReversed()) {
      if (!this.#has(client)) return client;
      const address = plainAddress(entry);
      // A proxy that hides its client, or a forged entry.
      if (address === null) return client;
      client = address;
    }
    return client;
  }

  #has(address: string): boolean {
    return isIP(address) !== 0 && this.#ranges.check(address, familyOf(address));
  }
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 4 ? 'ipv4' : 'ipv6';
}

/** Reads `203.0.113.7`, `203.0.113.7:51000`, `2001:db8::7` or `[2001:db8::7]:51000`; null: it is no address. */
function plainAddress(text: string): string | null {
  const trimmed = text.trim().replace(/^"(.*)"$/, '$1');
  const bare =
    /^\[([^\]]+)\](?::\d{1,5})?$/.exec(trimmed)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(trimmed)?.[1] ?? trimmed;
  // Node shows the IPv4 address of a peer in this form if it listens on IPv6.
  const address = bare.toLowerCase().replace(/^::ffff:(?=[\d.]+$)/, '');
  return isIP(address) === 0 ? null : address;
}

/**
 * What a limit per address counts by: an IPv4 address, or the first bits of an IPv6 address. 64 bits are the smallest network
 * that a customer of a provider gets, and 48 bits the greatest that is common.
 */
export function networkOf(address: string, bits: 64 | 48 = 64): string {
  const plain = plainAddress(address) ?? address;
  if (isIP(plain) !== 6) return plain;
  const [before = '', after] = plain.split('::');
  const first = before.split(':').filter(Boolean);
  const last = (after ?? '').split(':').filter(Boolean);
  const zeros = after === undefined ? 0 : Math.max(0, 8 - first.length - last.length);
  const groups = [...first, ...Array<string>(zeros).fill('0'), ...last].slice(0, bits / 16);
  return `${groups.map((group) => group.replace(/^0+(?=.)/, '')).join(':')}::/${bits}`;
}

const thisMachine = new BlockList();
thisMachine.addSubnet('127.0.0.0', 8, 'ipv4');
thisMachine.addAddress('::1', 'ipv6');

/**
 * Who takes turns where callers have no credential: the network of a client, so that new connections win nothing; on this
 * machine, where all clients have one address, the connection.
 */
export function turnOf({ clientAddress, connection }: { clientAddress: string; connection: string }): string {
  const address = plainAddress(clientAddress);
  return address === null || thisMachine.check(address, familyOf(address)) ? connection : networkOf(address);
}
