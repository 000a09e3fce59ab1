import { expect, test } from 'vitest';
import { featureSections } from '../../src/config/feature-sections.ts';
import { effective } from '../../src/config/configuration.ts';
import { configurationOf, errorsOf } from '../support/builders/config-builders.ts';

test('without any configuration the process is an authority with the documented defaults', () => {
  const configuration = configurationOf();
  expect(configuration.role).toBe('authority');
  const ofFeatures = new Set<string>(featureSections.map(({ name }) => name));
  const ofCore = Object.entries(effective(configuration)).filter(([name]) => !ofFeatures.has(name));
  expect(Object.fromEntries(ofCore)).toEqual({
    state_dir: '/home/ada/.local/state/latchkey',
    listen: {
      tcp: '127.0.0.1:8787',
      tls: null,
      socket: '/home/ada/.local/state/latchkey/latchkey.sock',
      socket_mode: '0600',
      sockets: [],
      dialect: 'specification',
      unknown: 'problem',
      drain_delay: '0s',
      header_aliases: { api_key: [], product_secret: [] },
      public: null,
      allow_remote: false,
      allowed_hosts: [],
      allowed_origins: [],
    },
    upstream: null,
    products: [],
    freshness: {
      fresh: '1d',
      stale: '7d',
      grace: '14d',
      expiry_grace: '1d',
      refresh: '6h',
      unknown: '1m',
      gone: '1d',
    },
    sync: {
      rate: 5,
      concurrency: 4,
      reconcile_after: '1m',
      writers: 'many',
      on_uncertain: 'infer',
      max_pending: 1_000_000,
      keep: '30d',
      backoff: { first: '1s', max: '15m' },
      breaker: { failures: 5, open: '30s' },
    },
    limits: {
      header_timeout: '5s',
      header_count: 40,
      header_bytes: '8KiB',
      request_timeout: '10s',
      body_bytes: '16KiB',
      parameters: 32,
      connections: 256,
      rate: 0,
      misses: 2,
      failed_rate: 5,
    },
    history: { keep: '90d' },
    metrics: { open: false },
    log: { level: 'info', format: 'json' },
  });
});

test.each([
  ['listen: { dialect: payhip }', 'reset'],
  ['listen: { dialect: payhip, unknown: problem }', 'problem'],
  ['upstream: { store: gumroad }', 'reset'],
  ['upstream: { store: gumroad }\nlisten: { unknown: problem }', 'problem'],
  ['listen: { dialect: specification }', 'problem'],
  ['listen: { dialect: specification, unknown: reset }', 'reset'],
  ['listen: {}', 'problem'],
])('the configuration `%s` has listen.unknown: %s', (text, unknown) => {
  expect(configurationOf({ text }).listen.unknown).toBe(unknown);
});

test('an invalid dialect is reported without a further error about listen.unknown', () => {
  expect(errorsOf({ text: 'listen: { dialect: [payhip] }' })).toEqual([
    expect.stringMatching(/^listen\.dialect: must be one of/),
  ]);
});

test('a configuration with an upstream is an agent that uses the header names of the specification', () => {
  const { role, upstream } = configurationOf({ text: 'upstream: { base_url: "https://api.example.com//" }' });
  expect(role).toBe('agent');
  expect(upstream).toEqual({
    store: null,
    baseUrl: 'https://api.example.com',
    apiKey: null,
    accessToken: null,
    dialect: 'specification',
    headers: { apiKey: null, productSecret: 'product-secret-key' },
    userAgent: null,
    timeoutMs: 10_000,
    probeMs: 30_000,
    caFile: null,
    connectTo: null,
    proxy: null,
  });
});

test('an agent of Gumroad needs no address and no secret', () => {
  const { role, upstream, products } = configurationOf({
    text: 'upstream: { store: gumroad }\nproducts: [{ key: A== }, { key: B }]',
  });
  expect(role).toBe('agent');
  expect(upstream).toMatchObject({ store: 'gumroad', baseUrl: 'https://api.gumroad.com', accessToken: null });
  expect(products).toMatchObject([{ key: 'A==', secret: null }, { key: 'B' }]);
});

test('a file with all sections of the documentation is parsed', () => {
  const configuration = configurationOf({
    text: `
state_dir: /var/lib/latchkey
listen:
  tcp: 127.0.0.1:8787
  socket: /run/latchkey/latchkey.sock
  socket_mode: "0660"
  sockets:
    - { path: /run/latchkey/shop.sock, mode: 0660, group: www-data, grant: { scopes: [verify, use], product: RGsF } }
  header_aliases: { api_key: [Payhip-Api-Key], product_secret: [] }
  allow_remote: false
  allowed_hosts: [Licenses.Example.com, "[::1]"]
  allowed_origins: ["https://App.Example.com:443/", "app://Notes", "chrome-extension://abc", "null", "file://"]
upstream:
  base_url: https://api.example.com/shop/
  api_key_file: /etc/latchkey/api-key
  ca_file: null
  proxy: null
products:
  - key: RGsF
    secret_file: /etc/latchkey/rgsf.secret
freshness: { fresh: 24h, stale: 7d, grace: 14d, refresh: 6h, unknown: 60s, gone: 24h }
`,
    files: { '/etc/latchkey/api-key': 'key-1\n', '/etc/latchkey/rgsf.secret': 'secret-1\r\n' },
  });
  expect(configuration.stateDir).toBe('/var/lib/latchkey');
  expect(configuration.listen).toEqual({
    tcp: [{ host: '127.0.0.1', port: 8787 }],
    tls: null,
    socket: '/run/latchkey/latchkey.sock',
    socketMode: 0o660,
    sockets: [
      {
        path: '/run/latchkey/shop.sock',
        mode: 0o660,
        group: 'www-data',
        grant: { scopes: ['verify', 'use'], product: 'RGsF' },
      },
    ],
    dialect: 'specification',
    unknown: 'problem',
    drainDelayMs: 0,
    headerAliases: { apiKey: ['payhip-api-key'], productSecret: [] },
    public: null,
    allowRemote: false,
    allowedHosts: ['licenses.example.com', '::1'],
    allowedOrigins: ['https://app.example.com', 'app://notes', 'chrome-extension://abc', 'null', 'file://'],
  });
  expect(configuration.upstream?.baseUrl).toBe('https://api.example.com/shop');
  expect(configuration.upstream?.apiKey?.reveal()).toBe('key-1');
  expect(configuration.products.map(({ key, secret }) => [key, secret?.reveal()])).toEqual([
    ['RGsF', 'secret-1'],
  ]);
});

test.each([
  [{ STATE_DIRECTORY: '/var/lib/latchkey:/other' }, '/var/lib/latchkey', '/var/lib/latchkey/latchkey.sock'],
  [{ XDG_STATE_HOME: '/s' }, '/s/latchkey', '/s/latchkey/latchkey.sock'],
  [
    { XDG_STATE_HOME: 'relative', XDG_RUNTIME_DIR: '/run/user/7' },
    '/home/ada/.local/state/latchkey',
    '/run/user/7/latchkey/latchkey.sock',
  ],
  [
    { RUNTIME_DIRECTORY: '/run/latchkey', XDG_RUNTIME_DIR: '/x', STATE_DIRECTORY: '/s' },
    '/s',
    '/run/latchkey/latchkey.sock',
  ],
  [{ LATCHKEY_STATE_DIR: 'here', STATE_DIRECTORY: '/s' }, '/work/here', '/work/here/latchkey.sock'],
])('with %o the state is in %s and the socket is %s', (environment, stateDir, socket) => {
  const configuration = configurationOf({ environment });
  expect([configuration.stateDir, configuration.listen.socket]).toEqual([stateDir, socket]);
});
