import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { Secret } from '../../src/config/setting-types.ts';
import { effective } from '../../src/config/configuration.ts';
import { configurationOf, denied, errorsOf, folder } from '../support/builders/config-builders.ts';

const withKeyFile = 'upstream: { base_url: "http://localhost", api_key_file: key }';

test.each([
  ['permission denied', denied()],
  ['is empty', '\n'],
  ['must hold one line of visible ASCII', 'hush\nhush'],
  ['must hold one line of visible ASCII', 'hush\u0000'],
])('a secret file is refused without showing its content: %s', (reason, content) => {
  const errors = errorsOf({ text: withKeyFile, files: { [`${folder}/key`]: content } });
  expect(errors).toHaveLength(1);
  expect(errors[0]).toContain(`${folder}/key`);
  expect(errors[0]).toContain(reason);
  expect(errors[0]).not.toContain('hush');
});

test('only the trailing newline of a secret file is removed', () => {
  const { upstream } = configurationOf({ text: withKeyFile, files: { [`${folder}/key`]: 'a b\r\n' } });
  expect(upstream?.apiKey?.reveal()).toBe('a b');
});

test('setting a secret and its file is an error, even if they come from different sources', () => {
  const environment = { LATCHKEY_UPSTREAM__API_KEY: 'k' };
  expect(errorsOf({ text: withKeyFile, environment })).toEqual([
    `upstream.api_key_file: is given as well as api_key: remove one of them (from ${folder}/config.yaml line 1)`,
  ]);
  const withoutFile = { ...environment, LATCHKEY_UPSTREAM__API_KEY_FILE: '' };
  expect(configurationOf({ text: withKeyFile, environment: withoutFile }).upstream?.apiKey?.reveal()).toBe(
    'k',
  );
});

test('two products with unreadable secret files are not reported as having the same secret', () => {
  const products = '[{ key: A, secret_file: /away }, { key: B, secret_file: /away }]';
  const errors = errorsOf({ text: `upstream: { base_url: "http://localhost" }\nproducts: ${products}` });
  expect(errors.map((error) => error.split(':')[0])).toEqual([
    'products[0].secret_file',
    'products[1].secret_file',
  ]);
});

test('two products with the same secret in different files are refused', () => {
  const products = '[{ key: A, secret_file: /one }, { key: B, secret_file: /two }]';
  const text = `upstream: { base_url: "http://localhost" }\nproducts: ${products}`;
  expect(errorsOf({ text, files: { '/one': 'hush\n', '/two': 'hush' } })).toEqual([
    expect.stringContaining('products: the same secret is given twice'),
  ]);
});

test('no way to print a configuration shows a secret', () => {
  const configuration = configurationOf({
    text: `
upstream: { base_url: "http://localhost", api_key: hush-1, proxy: "http://me:hush-2@proxy:3128" }
products: [{ key: A, secret: hush-3 }]`,
  });
  const { upstream } = configuration;
  expect(upstream?.proxy?.reveal()).toBe('http://me:hush-2@proxy:3128/');
  const shown = effective(configuration);
  expect(shown['products']).toMatchObject([{ key: 'A', name: null, secret: '***' }]);
  expect(shown['upstream']).toMatchObject({ api_key: '***', proxy: 'http://***:***@proxy:3128/' });
  for (const rendering of [
    JSON.stringify(configuration),
    inspect(configuration, { depth: 9, showHidden: true }),
    JSON.stringify(shown),
    String(configuration.products[0]?.secret),
    String(new Secret('hush')),
  ])
    expect(rendering).not.toContain('hush');
});

test('no error shows a secret that stands in the wrong place', () => {
  const texts = [
    'upstream: { base_url: "https://me:hush@x", api_key: "hush\\n1", proxy: "hush" }',
    'upstream: { base_url: hush, timeout: hush, headers: hush }\nproducts: hush',
    'products: [hush, { key: A, secret: [hush] }, { key: A, secret: { a: hush } }]\nlog: { level: hush }',
    'upstream: { api_key: "hush',
    'upstream: { api_key: @hush }',
    'upstream: { api_key: *hush }',
    'upstream: &hush { api_key: *hush }',
    'upstream: { api_key: !hush hush }',
    'upstream: { api_key: "\\qhush" }',
    'state_dir: [hush]\nlisten: { tcp: hush, socket_mode: hush, allowed_hosts: ["/hush"] }',
  ];
  for (const text of texts) {
    const errors = errorsOf({ text, environment: { LATCHKEY_PRODUCTS: '[{key: A, secret: "hush}]' } });
    expect(errors.length).toBeGreaterThan(0);
    expect(errors.join('\n')).not.toContain('hush');
    expect(errorsOf({ text }).join('\n')).not.toContain('hush');
  }
});

test('an unreadable certificate file is an error of the configuration', () => {
  expect(errorsOf({ text: 'upstream: { base_url: "http://localhost", ca_file: none.pem }' })).toEqual([
    `upstream.ca_file: cannot read ${folder}/none.pem: no such file or directory (from ${folder}/config.yaml line 1)`,
  ]);
});
