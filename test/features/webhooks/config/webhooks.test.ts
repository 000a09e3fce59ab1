import { expect, test } from 'vitest';
import { changedKeys, effective } from '../../../../src/config/configuration.ts';
import { reloadedConfiguration } from '../../../../src/daemon/live-configuration.ts';
import { parseConfiguration } from '../../../../src/config/load.ts';
import {
  configSources,
  configurationOf,
  errorsOf,
  folder,
} from '../../../support/builders/config-builders.ts';

const agent = `upstream: { base_url: "https://api.example.com" }
products: [{ key: RGsF, secret: secret-of-RGsF }]
`;

test('without any configuration the section has the documented defaults', () => {
  expect(effective(configurationOf())['webhooks']).toEqual({
    in: {},
    out: { allow: [], license_expiring: '7d' },
  });
});

test('webhooks.in names the stores whose events an agent accepts, each with its secret or the file of its secret', () => {
  const { webhooks } = configurationOf({
    text: `${agent}webhooks:
  in:
    shop: { from: payhip, secret_file: payhip.key }
    polar-2: { from: standard, secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw }
`,
    files: { [`${folder}/payhip.key`]: 'api-key-of-payhip\n' },
  });
  expect(Object.keys(webhooks.in)).toEqual(['shop', 'polar-2']);
  expect(webhooks.in['shop']?.from).toBe('payhip');
  expect(webhooks.in['shop']?.secret.reveal()).toBe('api-key-of-payhip');
});

test('environment variables can set a store of webhooks.in', () => {
  const { webhooks } = configurationOf({
    text: agent,
    environment: {
      LATCHKEY_WEBHOOKS__IN__SHOP__FROM: 'gumroad',
      LATCHKEY_WEBHOOKS__IN__SHOP__SECRET: 'in-the-url',
    },
  });
  expect(webhooks.in['shop']?.from).toBe('gumroad');
});

test.each([
  [
    'a sender that does not exist',
    'shop: { from: paypal, secret: x }',
    'webhooks.in.shop.from: must be one of payhip, gumroad',
  ],
  ['no secret', 'shop: { from: payhip }', 'webhooks.in.shop.secret: is missing'],
  [
    'a misspelled key',
    'shop: { from: payhip, secret: x, secrets: y }',
    'webhooks.in.shop.secrets: unknown key; did you mean secret?',
  ],
  [
    'a secret of Standard Webhooks that is a password',
    'shop: { from: standard, secret: password }',
    'webhooks.in.shop.secret: must be the whole secret that the sender shows: 24 to 64 bytes in base64 after whsec_',
  ],
  [
    'a secret of Standard Webhooks that is too short',
    'shop: { from: standard, secret: whsec_c2hvcnQ= }',
    'webhooks.in.shop.secret: must be the whole secret that the sender shows: 24 to 64 bytes in base64 after whsec_',
  ],
  [
    'a name that no URL should have',
    '"Shop/1": { from: payhip, secret: x }',
    'webhooks.in.Shop/1: must be a name of 1 to 40 lower-case letters, digits, - and _',
  ],
  [
    'a secret file that does not exist',
    'shop: { from: standard, secret_file: none }',
    'webhooks.in.shop.secret_file: cannot read',
  ],
])('webhooks.in with %s is refused with one error', (_, entry, error) => {
  expect(errorsOf({ text: `${agent}webhooks: { in: { ${entry} } }` })).toEqual([
    expect.stringContaining(error),
  ]);
});

test('webhooks.in with more than 32 names is refused', () => {
  const entries = Array.from({ length: 33 }, (_, index) => `shop${index}: { from: payhip, secret: x }`);
  expect(errorsOf({ text: `${agent}webhooks: { in: { ${entries.join(', ')} } }` })).toEqual([
    expect.stringContaining('webhooks.in: must have at most 32 names'),
  ]);
});

test('webhooks.in is refused without an upstream, because only an agent reads from a store', () => {
  expect(errorsOf({ text: 'webhooks: { in: { shop: { from: payhip, secret: x } } }' })).toEqual([
    expect.stringContaining('webhooks: receives events of a store, which only an agent can use'),
  ]);
});

test('a configuration with webhooks.in is shown with its secrets masked, and its file counts as a file with secrets', () => {
  const text = `${agent.replace('secret: secret-of-RGsF', 'secret_file: s')}webhooks: { in: { shop: { from: payhip, secret: api-key } } }`;
  const loaded = parseConfiguration(configSources({ text, files: { [`${folder}/s`]: 'secret-of-RGsF' } }));
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors));
  expect(effective(loaded.configuration)['webhooks']).toMatchObject({
    in: { shop: { from: 'payhip', secret: '***' } },
  });
  expect(loaded.fileWithSecrets).toBe(loaded.file);
});

test('a reload applies new names and new secrets of webhooks.in, and names the changed keys', () => {
  const withHooks = (hooks: string) => configurationOf({ text: `${agent}webhooks: { in: { ${hooks} } }` });
  const before = withHooks('shop: { from: payhip, secret: old }');
  const after = withHooks('shop: { from: payhip, secret: new }, other: { from: gumroad, secret: x }');
  const reloaded = reloadedConfiguration(before, after);
  expect(reloaded.webhooks.in['shop']?.secret.reveal()).toBe('new');
  expect(changedKeys(before, reloaded)).toEqual([
    'webhooks.in.shop.secret',
    'webhooks.in.other.from',
    'webhooks.in.other.secret',
  ]);
});
