import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { effective } from '../../../../src/config/configuration.ts';
import { reloadedConfiguration } from '../../../../src/daemon/live-configuration.ts';
import { configurationOf, errorsOf, folder, warningsOf } from '../../../support/builders/config-builders.ts';

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const publicJwk = publicKey.export({ format: 'jwk' });
const root = JSON.stringify(publicJwk);
const files = { [`${folder}/root-1.pub.jwk`]: root };

const holder = `leases: { issuer: "https://licenses.example.com/", roots: [root-1.pub.jwk] }
products: [{ key: RGsF }]
`;

test('without any configuration the section has the documented defaults', () => {
  expect(effective(configurationOf())['leases']).toEqual({
    issuer: null,
    roots: [],
    activate: 'on_verify',
    device_key_file: null,
    device_name: null,
    timeout: '10s',
    ca_file: null,
    proxy: null,
    signing_dir: null,
  });
});

test('a configuration with leases.issuer is that of a holder', () => {
  const { role, leases, products } = configurationOf({ text: holder, files });
  expect(role).toBe('holder');
  expect(leases).toEqual({
    issuer: 'https://licenses.example.com',
    roots: [`${folder}/root-1.pub.jwk`],
    activate: 'on_verify',
    deviceKeyFile: null,
    deviceName: null,
    timeoutMs: 10_000,
    caFile: null,
    proxy: null,
    signingDir: null,
  });
  expect(products).toMatchObject([{ key: 'RGsF', name: null, secret: null }]);
});

test('the root keys of a holder can be given by environment variables, from the working directory', () => {
  const { leases } = configurationOf({
    environment: {
      LATCHKEY_LEASES__ISSUER: 'http://127.0.0.1:8787',
      LATCHKEY_LEASES__ROOTS__0: 'root.jwk',
      LATCHKEY_LEASES__DEVICE_NAME: 'false',
      LATCHKEY_PRODUCTS__0__KEY: 'RGsF',
    },
    files: { '/work/root.jwk': root },
  });
  expect(leases).toMatchObject({
    issuer: 'http://127.0.0.1:8787',
    roots: ['/work/root.jwk'],
    deviceName: false,
  });
});

test.each([
  [
    'an upstream',
    `${holder}upstream: { base_url: "https://api.example.com" }`,
    ['leases: has an issuer, which makes this process a holder: remove upstream and store, or leases.issuer'],
  ],
  [
    'a database',
    `${holder}store: { postgres: { url: "postgres://a@localhost/b" } }`,
    ['leases: has an issuer, which makes this process a holder'],
  ],
  ['no product', holder.replace('[{ key: RGsF }]', '[]'), ['products: must have at least one product']],
  [
    'no root key',
    holder.replace('[root-1.pub.jwk]', '[]'),
    ['leases.roots: must name at least one public root key'],
  ],
  ['a secret', holder.replace('RGsF', 'RGsF, secret: s'), ['products[0].secret: must not be given']],
  ['plain http', holder.replace('https:', 'http:'), ['leases.issuer: must be an https URL']],
  ['a query', holder.replace('.com/', '.com/?a'), ['leases.issuer: must be an https URL']],
  [
    'a signing directory',
    holder.replace('roots', 'signing_dir: /s, roots'),
    ['leases.signing_dir: is only for an issuer'],
  ],
  [
    'a long device name',
    holder.replace('roots', `device_name: ${'x'.repeat(101)}, roots`),
    ['leases.device_name: must be one line of at most 100 characters, or false'],
  ],
  ['a root key without an issuer', 'leases: { roots: [root-1.pub.jwk] }', ['leases.issuer: is missing']],
])('a holder with %s is refused', (_, text, errors) => {
  expect(errorsOf({ text, files })).toEqual(errors.map((error) => expect.stringContaining(error) as string));
});

test('a secret in a file of its own is refused for a holder', () => {
  const text = holder.replace('RGsF', 'RGsF, secret_file: a.secret');
  expect(errorsOf({ text, files: { ...files, [`${folder}/a.secret`]: 's' } })).toEqual([
    expect.stringContaining('products[0].secret: must not be given') as string,
  ]);
});

const offCurve = { ...publicJwk, y: publicJwk.x };

test.each([
  ['a file that does not exist', new Error('ENOENT'), 'cannot read'],
  ['text', 'root', 'is not JSON'],
  ['a private key', JSON.stringify(privateKey.export({ format: 'jwk' })), 'contains a private key'],
  ['a key of another type', '{"kty":"RSA","n":"AQ","e":"AQAB"}', 'is not the public part of a P-256 key'],
  ['a point that is not on the curve', JSON.stringify(offCurve), 'is not the public part of a P-256 key'],
  ['a list', `[${root}]`, 'is not the public part of a P-256 key'],
])('%s is refused as a root key', (_, content, error) => {
  expect(errorsOf({ text: holder, files: { [`${folder}/root-1.pub.jwk`]: content } })).toEqual([
    expect.stringMatching(
      new RegExp(`^leases\\.roots\\[0\\]: .*root-1\\.pub\\.jwk ?${error}|cannot read`),
    ) as string,
  ]);
});

test('two holders of one configuration file need no warning, since it has no secret', () => {
  expect(warningsOf({ text: holder, files, worldReadable: [`${folder}/config.yaml`] })).toEqual([]);
});

test('a configuration file with the password of the proxy of a holder is warned of if every user can read it', () => {
  const text = holder.replace('roots', 'proxy: "http://me:hush-hush@proxy", roots');
  expect(warningsOf({ text, files, worldReadable: [`${folder}/config.yaml`] })).toEqual([
    expect.stringContaining('holds a secret and can be read by every user') as string,
  ]);
});

test('a device key that every user can read is warned of', () => {
  const text = holder.replace('roots', 'device_key_file: /run/device.jwk, roots');
  expect(warningsOf({ text, files, worldReadable: ['/run/device.jwk'] })).toEqual([
    expect.stringContaining('leases.device_key_file: /run/device.jwk can be read by every user') as string,
  ]);
});

test('a reload applies when to activate, the name of the device and the products, and nothing else about leases', () => {
  const running = configurationOf({ text: holder, files });
  const text = `leases:
  issuer: https://other.example.com
  roots: [other.jwk]
  activate: explicit
  device_name: ward
  timeout: 5s
products: [{ key: RGsF }, { key: Q2mX }]
`;
  const requested = configurationOf({ text, files: { [`${folder}/other.jwk`]: root } });
  const { leases, products } = reloadedConfiguration(running, requested);
  expect(leases).toEqual({ ...running.leases, activate: 'explicit', deviceName: 'ward' });
  expect(products).toEqual(requested.products);
});
