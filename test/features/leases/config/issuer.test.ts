import { expect, test } from 'vitest';
import { LiveConfiguration } from '../../../../src/daemon/live-configuration.ts';
import { defaultLeaseTerms } from '../../../../src/domain/catalogue.ts';
import { configurationOf, errorsOf } from '../../../support/builders/config-builders.ts';

const agent = (terms: string): string => `upstream: { base_url: "http://localhost" }
products: [{ key: A, secret: hush${terms} }]
`;

function termsIn(terms: string): unknown {
  const configuration = configurationOf({ text: agent(terms) });
  const current = new LiveConfiguration(configuration);
  return current.leaseTermsOf(current.products.idOf('A') ?? '');
}

test('a product of an agent has the usual lease terms if none are given', () => {
  expect(termsIn('')).toEqual(defaultLeaseTerms);
});

test('a product of an agent has the lease terms that are given', () => {
  expect(termsIn(', seats: 3, hold: 0, term: 5m, refresh: 1m, lease_email: true')).toEqual({
    seats: 3,
    holdMs: 0,
    termMs: 300_000,
    refreshMs: 60_000,
    showsEmail: true,
  });
});

test.each([
  ['seats: 0', 'seats: must be a whole number above 0'],
  ['seats: 1000001', 'seats: must be at most 1000000'],
  ['hold: 1001d', 'hold: must be at most 1000d'],
  ['term: 59s, refresh: 10s', 'term: must be 1m to 400d'],
  ['term: 401d', 'term: must be 1m to 400d'],
  ['refresh: 9s', 'refresh: must be at least 10s and less than term'],
  ['term: 1h, refresh: 1h', 'refresh: must be at least 10s and less than term'],
  ['lease_email: perhaps', 'lease_email: must be true or false'],
])('the lease terms %s are refused', (terms, error) => {
  expect(errorsOf({ text: agent(`, ${terms}`) })).toEqual([expect.stringContaining(`products[0].${error}`)]);
});

const listener = (settings: string): string => `listen: { public: { ${settings} } }`;

test('a public listener has an address, ranges of proxies and a limit of connections', () => {
  const text = listener('address: "0.0.0.0:8788", proxies: [10.0.0.0/8, "2001:db8::/32", 192.0.2.1]');
  expect(configurationOf({ text }).listen.public).toMatchObject({
    address: { host: '0.0.0.0', port: 8788 },
    proxies: [
      { address: '10.0.0.0', prefix: 8 },
      { address: '2001:db8::', prefix: 32 },
      { address: '192.0.2.1', prefix: 32 },
    ],
    connections: 16_384,
  });
});

test.each([
  ['no address', 'proxies: []', 'listen.public.address: is missing'],
  [
    'a name as a proxy',
    'address: "127.0.0.1:1", proxies: [proxy.local]',
    'listen.public.proxies[0]: must be',
  ],
  ['a range that is too small', 'address: "127.0.0.1:1", proxies: [10.0.0.0/33]', 'listen.public.proxies[0]'],
  ['a range without bits', 'address: "127.0.0.1:1", proxies: [10.0.0.0/]', 'listen.public.proxies[0]'],
  ['no connections', 'address: "127.0.0.1:1", connections: 0', 'listen.public.connections: must be'],
  ['an unknown key', 'address: "127.0.0.1:1", tls: true', 'listen.public.tls: unknown key'],
])('a public listener with %s is refused', (_, settings, error) => {
  expect(errorsOf({ text: listener(settings) })).toEqual([expect.stringContaining(error)]);
});
