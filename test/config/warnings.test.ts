import { expect, test } from 'vitest';
import { folder, warningsOf } from '../support/builders/config-builders.ts';

const here = `${folder}/config.yaml`;

test.each([
  'http://store.example/shop',
  'http://10.0.0.1:8787',
  'http://[2001:db8::1]',
  'http://localhost.example',
])('an upstream at %s causes a warning that secrets are not encrypted', (url) => {
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
])('an upstream at %s causes no warning', (url) => {
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
])('a configuration file that contains %s causes a warning if every user can read it', (_, text) => {
  expect(warningsOf({ text, files, worldReadable: [here] })).toEqual([
    `file: ${here} holds a secret and can be read by every user of this machine: chmod 0600 (from flag)`,
  ]);
  expect(warningsOf({ text, files })).toEqual([]);
});

test('a configuration file without secrets may be readable by every user', () => {
  const text =
    'upstream: { base_url: "http://localhost", api_key_file: /etc/key, proxy: "http://proxy" }\nproducts: [{ key: A }]';
  const environment = { LATCHKEY_PRODUCTS__0__SECRET: 'hush' };
  expect(warningsOf({ text, environment, files, worldReadable: [here] })).toEqual([]);
});

test('a secret file causes a warning if every user can read it', () => {
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

test('on Windows the warning of a readable file names no permission bits', () => {
  const text = `listen: { socket: false }\n${agent}products: [{ key: A, secret: hush }]`;
  const named = String.raw`C:\srv\latchkey\config.yaml`;
  expect(warningsOf({ text, worldReadable: [named], platform: 'win32' })).toEqual([
    `file: ${named} holds a secret and can be read by other users of this machine: latchkey doctor says who, and how to change that (from flag)`,
  ]);
});
