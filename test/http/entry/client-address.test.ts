import { describe, expect, test } from 'vitest';
import { networkOf, Proxies, turnOf } from '../../../src/http/entry/client-address.ts';

const proxies = new Proxies([
  { address: '10.0.0.0', prefix: 8 },
  { address: '2001:db8:1::', prefix: 48 },
]);

describe('the address of a client', () => {
  test.each([
    ['a connection that comes from no proxy', '203.0.113.7', [], '203.0.113.7'],
    ['a forged header from a client', '203.0.113.7', ['198.51.100.1'], '203.0.113.7'],
    ['one proxy', '10.0.0.1', ['198.51.100.1'], '198.51.100.1'],
    [
      'a client that forges an entry behind one proxy',
      '10.0.0.1',
      ['192.0.2.1, 198.51.100.1'],
      '198.51.100.1',
    ],
    ['two proxies', '10.0.0.1', ['192.0.2.1, 198.51.100.1, 10.2.0.9'], '198.51.100.1'],
    ['two lines of the header', '10.0.0.1', ['192.0.2.1', '198.51.100.1,10.2.0.9'], '198.51.100.1'],
    ['only proxies', '10.0.0.1', ['10.0.0.3, 10.0.0.2'], '10.0.0.3'],
    ['a proxy that sends no header', '10.0.0.1', [], '10.0.0.1'],
    ['an empty header', '10.0.0.1', [''], '10.0.0.1'],
    ['an entry that is no address', '10.0.0.1', ['198.51.100.1, unknown'], '10.0.0.1'],
    ['an entry that is no address, before a proxy', '10.0.0.1', ['x, 10.0.0.2'], '10.0.0.2'],
    ['an entry with a port', '10.0.0.1', ['198.51.100.1:51000'], '198.51.100.1'],
    ['an entry that is an IPv6 address', '10.0.0.1', ['2001:DB8::7'], '2001:db8::7'],
    ['an entry that is an IPv6 address with a port', '10.0.0.1', ['"[2001:db8::7]:443"'], '2001:db8::7'],
    ['a proxy with an IPv6 address', '2001:db8:1::9', ['198.51.100.1'], '198.51.100.1'],
    ['a peer that Node shows as a mapped address', '::ffff:10.0.0.1', ['198.51.100.1'], '198.51.100.1'],
    ['an entry that is a mapped address', '10.0.0.1', ['::ffff:198.51.100.1'], '198.51.100.1'],
    ['a Unix socket', 'socket', ['198.51.100.1'], 'socket'],
  ])('is right for %s', (_, peer, forwardedFor, client) => {
    expect(proxies.clientOf(peer, forwardedFor)).toBe(client);
  });

  test('is that of the connection if no proxy is configured', () => {
    expect(new Proxies([]).clientOf('127.0.0.1', ['198.51.100.1'])).toBe('127.0.0.1');
  });

  test('is found in a header with thousands of entries', () => {
    const many = Array<string>(4_000).fill('10.0.0.2').join();
    expect(proxies.clientOf('10.0.0.1', [`198.51.100.1,${many}`])).toBe('198.51.100.1');
  });
});

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8::7', '2001:db8:0:0::/64'],
  ['2001:0db8:0000:0000:ffff::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['1::', '1:0:0:0::/64'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['socket', 'socket'],
])('the limits count %s as %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});

test('a wider network is the first 48 bits of an IPv6 address', () => {
  expect(networkOf('2001:db8::7', 48)).toBe('2001:db8:0::/48');
  expect(networkOf('203.0.113.7', 48)).toBe('203.0.113.7');
});

test.each([
  ['127.0.0.1', 'connection 7'],
  ['127.3.2.1', 'connection 7'],
  ['::1', 'connection 7'],
  ['::ffff:127.0.0.1', 'connection 7'],
  ['socket', 'connection 7'],
  ['203.0.113.7', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['2001:db8::7', '2001:db8:0:0::/64'],
])('a caller from %s without a credential takes turns as %s', (clientAddress, turn) => {
  expect(turnOf({ clientAddress, connection: 'connection 7' })).toBe(turn);
});
