import { expect, test } from 'vitest';
import { errorsOf, folder, warningsOf } from '../support/builders/config-builders.ts';

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
const files = { '/etc/key': 'key-of-the-shop', [`${folder}/a.secret`]: 'secret-of-A' };

test.each([
  ['the secret of a product', `${agent}products: [{ key: A, secret: hush-hush }]`],
  [
    'the secret of one of several products',
    `${agent}products: [{ key: A, secret_file: a.secret }, { key: B, secret: hush-hush }]`,
  ],
  ['an API key', 'upstream: { base_url: "http://localhost", api_key: hush-hush }'],
  [
    'the password of a proxy',
    'upstream: { base_url: "http://localhost", proxy: "http://me:hush-hush@proxy" }',
  ],
])('a configuration file that contains %s causes a warning if every user can read it', (_, text) => {
  expect(warningsOf({ text, files, worldReadable: [here] })).toEqual([
    `file: ${here} holds a secret and can be read by every user of this machine: chmod 0600 (from flag)`,
  ]);
  expect(warningsOf({ text, files })).toEqual([]);
});

test('a configuration file without secrets may be readable by every user', () => {
  const text =
    'upstream: { base_url: "http://localhost", api_key_file: /etc/key, proxy: "http://proxy" }\nproducts: [{ key: A }]';
  const environment = { LATCHKEY_PRODUCTS__0__SECRET: 'hush-hush' };
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
  const text = `listen: { socket: false }\n${agent}products: [{ key: A, secret: hush-hush }]`;
  const named = String.raw`C:\srv\latchkey\config.yaml`;
  expect(warningsOf({ text, worldReadable: [named], platform: 'win32' })).toEqual([
    `file: ${named} holds a secret and can be read by other users of this machine: latchkey doctor says who, and how to change that (from flag)`,
  ]);
});

test('a short access token causes a warning', () => {
  const text = 'upstream: { store: gumroad, access_token: x }';
  expect(warningsOf({ text }).filter((line) => line.includes('shorter'))).toEqual([
    `upstream.access_token: is shorter than 8 characters, so it can be guessed: is it the whole secret? (from ${here} line 1)`,
  ]);
});

test('short secrets cause a warning', () => {
  const text =
    'upstream: { base_url: "https://store.example", api_key: x }\nproducts: [{ key: A, secret: "1" }, { key: B, secret: long-enough }]';
  expect(warningsOf({ text }).filter((line) => line.includes('shorter'))).toEqual([
    `upstream.api_key: is shorter than 8 characters, so it can be guessed: is it the whole secret? (from ${here} line 1)`,
    `products[0].secret: is shorter than 8 characters, so it can be guessed: is it the whole secret? (from ${here} line 2)`,
  ]);
});

test.each(['0.0.0.0/0', '"::/0"'])('proxies that contain every address are refused: %s', (range) => {
  expect(errorsOf({ text: `listen: { public: { address: 127.0.0.1:1, proxies: [${range}] } }` })).toEqual([
    expect.stringMatching(/^listen\.public\.proxies: must not contain every address: /),
  ]);
});
