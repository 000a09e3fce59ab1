import { expect, test } from 'vitest';
import { folder, warningsOf } from '../support/builders/config-builders.ts';

const here = `${folder}/config.yaml`;

test.each([
  'http://store.example/shop',
  'http://10.0.0.1:8787',
  'http://[2001:db8::1]',
  'http://localhost.example',
])('secrets that go to %s without encryption are warned of', (url) => {
  expect(warningsOf({ text: `upstream:\n  base_url: "${url}"` })).toEqual([
    `upstream.base_url: is plain http to another machine: anyone on the network path can read the secrets; use https (from ${here} line 2)`,
  ]);
});

test.each([
  'https://store.example',
  'http://localhost:1',
  'http://LOCALHOST',
  'http://127.0.0.2:1',
  'http://[::1]:1',
])('the way to %s is not warned of', (url) => {
  expect(warningsOf({ text: `upstream: { base_url: "${url}" }` })).toEqual([]);
});

const agent = 'upstream: { base_url: "http://localhost" }\n';
const files = { '/etc/key': 'key', [`${folder}/a.secret`]: 'secret' };

test.each([
  ['the secret of a product', `${agent}products: [{ key: A, secret: hush }]`],
  [
    'the secret of one of several products',
    `${agent}products: [{ key: A, secret_file: a.secret }, { key: B, secret: hush }]`,
  ],
  ['an API key', 'upstream: { base_url: "http://localhost", api_key: hush }'],
  ['the password of a proxy', 'upstream: { base_url: "http://localhost", proxy: "http://me:hush@proxy" }'],
])('a file with %s in it is warned of when every user can read it', (_, text) => {
  expect(warningsOf({ text, files, worldReadable: [here] })).toEqual([
    `file: ${here} holds a secret and can be read by every user of this machine: chmod 0600 (from flag)`,
  ]);
  expect(warningsOf({ text, files })).toEqual([]);
});

test('a file that holds no secret may be read by every user, wherever the secrets are', () => {
  const text =
    'upstream: { base_url: "http://localhost", api_key_file: /etc/key, proxy: "http://proxy" }\nproducts: [{ key: A }]';
  const environment = { LATCHKEY_PRODUCTS__0__SECRET: 'hush' };
  expect(warningsOf({ text, environment, files, worldReadable: [here] })).toEqual([]);
});

test('a secret file is warned of when every user can read it', () => {
  const text = `upstream: { base_url: "http://localhost", api_key_file: /etc/key }
products:
  - key: A
    secret_file: a.secret`;
  const worldReadable = ['/etc/key', `${folder}/a.secret`];
  expect(warningsOf({ text, files, worldReadable })).toEqual([
    `upstream.api_key_file: /etc/key can be read by every user of this machine: chmod 0600 (from ${here} line 1)`,
    `products[0].secret_file: ${folder}/a.secret can be read by every user of this machine: chmod 0600 (from ${here} line 4)`,
  ]);
  expect(warningsOf({ text, files, worldReadable: ['/etc/key'] })).toHaveLength(1);
});

test('Windows has no permission bits to warn of', () => {
  const text = `listen: { socket: false }\n${agent}products: [{ key: A, secret: hush }]`;
  expect(warningsOf({ text, worldReadable: [here] })).toHaveLength(1);
  expect(warningsOf({ text, worldReadable: [here], platform: 'win32' })).toEqual([]);
});
