import type { LookupAddress } from 'node:dns';
import { isIP } from 'node:net';
import { describe, expect, test } from 'vitest';
import { findDestination, isPublic, type AddressRange } from '../../../src/features/webhooks/address.ts';

type Found = { allow?: readonly AddressRange[]; own?: readonly string[]; addresses?: readonly string[] };

function found(url: string, { allow = [], own = [], addresses = [] }: Found = {}) {
  const resolved: LookupAddress[] = addresses.map((address) => ({ address, family: isIP(address) }));
  return findDestination(url, { allow: () => allow, own: () => own, resolve: async () => resolved });
}

function detailOf(result: Awaited<ReturnType<typeof found>>): string | undefined {
  return result.ok ? undefined : result.problem.errors?.[0]?.detail;
}

const refused = {
  'this machine': ['127.0.0.1', '127.8.9.10', '::1', '0.0.0.0', '0.1.2.3', '::'],
  'a private network': ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fc00::1', 'fd12:3456::1'],
  'a link': ['169.254.1.1', 'fe80::1'],
  'a metadata service': ['169.254.169.254', 'fd00:ec2::254', '100.100.100.200', '168.63.129.16'],
  'a carrier NAT': ['100.64.0.1', '100.127.255.255'],
  NAT64: ['64:ff9b::7f00:1', '64:ff9b:1::1'],
  '6to4': ['2002:7f00:1::1', '192.88.99.1'],
  Teredo: ['2001:0:4136:e378:8000:63bf:3fff:fdd2'],
  'an IPv4 address in IPv6 notation': ['::ffff:127.0.0.1', '::ffff:8.8.8.8', '::127.0.0.1'],
  'multicast or broadcast': ['224.0.0.1', '255.255.255.255', 'ff02::1'],
  'documentation or benchmarks': ['192.0.2.1', '198.51.100.7', '203.0.113.9', '198.18.0.1', '2001:db8::1'],
};

describe.each(Object.entries(refused))('an address of %s', (_, addresses) => {
  test.each(addresses)('%s is refused', async (address) => {
    expect(isPublic(address)).toBe(false);
    const host = isIP(address) === 6 ? `[${address}]` : address;
    expect((await found(`https://${host}/`)).ok).toBe(false);
    expect((await found('https://hooks.example/', { addresses: [address] })).ok).toBe(false);
  });
});

test.each(['8.8.8.8', '100.63.255.255', '100.128.0.1', '172.32.0.1', '192.0.1.1', '2606:4700::1111'])(
  '%s is an address on the internet',
  async (address) => {
    expect(isPublic(address)).toBe(true);
    const result = await found('https://hooks.example/', { addresses: [address] });
    expect(result).toMatchObject({ ok: true, value: { addresses: [{ address }] } });
  },
);

test.each(['https://2130706433/', 'https://0x7f.1/', 'https://127.1/', 'https://017700000001/'])(
  '%s is an address of this machine in another notation, and is refused',
  async (url) => {
    expect(detailOf(await found(url))).toBe(
      '127.0.0.1 is not an address on the internet, and not in webhooks.out.allow',
    );
  },
);

test('a name is refused if one of its addresses is refused', async () => {
  const result = await found('https://hooks.example/', { addresses: ['8.8.8.8', '10.1.2.3'] });
  expect(detailOf(result)).toBe('10.1.2.3 is not an address on the internet, and not in webhooks.out.allow');
});

test('an address on the internet that this machine has is refused', async () => {
  const result = await found('https://hooks.example/', { addresses: ['8.8.8.8'], own: ['8.8.8.8'] });
  expect(detailOf(result)).toBe('8.8.8.8 is an address of this machine, and not in webhooks.out.allow');
});

test('a name without an address is refused', async () => {
  expect(detailOf(await found('https://nowhere.example/'))).toBe('the name nowhere.example has no address');
});

test('webhooks.out.allow permits its addresses, also with plain http, and no others', async () => {
  const allow = [
    { address: '10.1.0.0', prefix: 16 },
    { address: '::1', prefix: 128 },
  ];
  expect((await found('http://10.1.2.3:8080/hook', { allow })).ok).toBe(true);
  expect((await found('http://[::1]/', { allow })).ok).toBe(true);
  expect((await found('https://10.2.0.1/', { allow })).ok).toBe(false);
});

test('plain http is refused to an address on the internet', async () => {
  const result = await found('http://hooks.example/', { addresses: ['8.8.8.8'] });
  expect(detailOf(result)).toBe(
    '8.8.8.8 is not in webhooks.out.allow, and plain http is only for addresses there',
  );
});
