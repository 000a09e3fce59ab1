import { expect, test } from 'vitest';
import { errorsOf, folder } from '../support/builders/config-builders.ts';

const here = `${folder}/config.yaml`;
const agent = 'upstream: { base_url: "http://localhost" }\n';

test('all errors of a configuration are reported at once, each with the source of its value', () => {
  expect(
    errorsOf({
      text: `listen:
  tcp: nowhere
  sokcet: /x
upstream:
  api_key_file: /etc/api-key
products:
  - key: A
    secret: s
    secret_file: /etc/a.secret
  - secret: t
freshness: { fresh: 8d }
sync:
  rate: -1
`,
      environment: { LATCHKEY_LOG__LEVEL: 'loud', LATCHKEY_LOGS: 'x' },
      flags: { limits: { parameters: 0 }, metrics: { open: 'yes' } },
    }),
  ).toEqual([
    `listen.tcp: must be host:port, such as 127.0.0.1:8787, with a port from 0 to 65535, or a list of at most 8 of them, or false (from ${here} line 2)`,
    `listen.sokcet: unknown key; did you mean socket? (from ${here} line 3)`,
    `upstream.base_url: is missing (from ${here} line 4)`,
    `products[1].key: is missing (from ${here} line 10)`,
    `freshness.fresh: must not be longer than stale (from ${here} line 11)`,
    `sync.rate: must be a number above 0 (from ${here} line 13)`,
    'limits.parameters: must be a whole number above 0 (from flag)',
    'metrics.open: must be true or false (from flag)',
    'log.level: must be one of trace, debug, info, warn, error, fatal, silent (from environment LATCHKEY_LOG__LEVEL)',
    'logs: unknown key; did you mean log? (from environment LATCHKEY_LOGS)',
    `upstream.api_key_file: cannot read /etc/api-key: no such file or directory (from ${here} line 5)`,
    `products[0].secret_file: is given as well as secret: remove one of them (from ${here} line 9)`,
  ]);
});

test.each([
  ['listen: { tcp: 0.0.0.0:8787 }', 'listen.tcp: is not a loopback address: set listen.allow_remote'],
  ['listen: { tcp: "example.com:80" }', 'listen.tcp: is not a loopback address'],
  ['listen: { tcp: "[::]:80" }', 'listen.tcp: is not a loopback address'],
  ['listen: { tcp: 127.0.0.1:65536 }', 'listen.tcp: must be host:port'],
  ['listen: { tcp: 8787 }', 'listen.tcp: must be host:port'],
  ['listen: { tcp: "http://127.0.0.1:80" }', 'listen.tcp: must be host:port'],
  ['listen: { tcp: "127.0.0.1:80/" }', 'listen.tcp: must be host:port'],
  ['listen: { tcp: true }', 'listen.tcp: must be host:port'],
  ['listen: { tcp: [] }', 'listen.tcp: must be host:port'],
  ['listen: { tcp: ["127.0.0.1:80", false] }', 'listen.tcp: must be host:port'],
  [`listen: { tcp: [${'"127.0.0.1:80", '.repeat(9)}] }`, 'listen.tcp: must be host:port'],
  ['listen: { tcp: ["127.0.0.1:80", "127.0.0.1:80"] }', 'listen.tcp: has the same address twice'],
  ['listen: { tcp: ["127.0.0.1:80", "0.0.0.0:81"] }', 'listen.tcp: is not a loopback address'],
  ['listen: { tcp: "[example]:80" }', 'listen.tcp: must be host:port'],
  [
    'listen: { tcp: false, socket: false }',
    'listen.tcp: has no listener: turn on listen.tcp, listen.socket or listen.sockets',
  ],
  [`listen: { socket: /${'x'.repeat(107)} }`, 'listen.socket: must be a path of at most 107 bytes'],
  [`state_dir: /${'é'.repeat(60)}`, 'listen.socket: must be a path of at most 107 bytes'],
  ['listen: { socket_mode: "0999" }', 'listen.socket_mode: must be permission bits in octal'],
  ['listen: { socket_mode: 06600 }', 'listen.socket_mode: must be permission bits in octal'],
  ['listen: { socket_mode: 10660 }', 'listen.socket_mode: must be permission bits in octal'],
  ['listen: { sockets: /x }', 'listen.sockets: must be a list'],
  ['listen: { sockets: {} }', 'listen.sockets: must be a list'],
  ['listen: { sockets: [/x] }', 'listen.sockets[0]: must be a mapping'],
  ['listen: { sockets: [{ path: /x }, { path: /x }] }', 'listen.sockets: has the same path twice'],
  ['listen: { socket: /x, sockets: [{ path: /x }] }', 'listen.sockets: has the same path twice'],
  [
    'listen: { sockets: [{ path: /x, grant: {} }] }',
    'listen.sockets[0].grant.scopes: must name at least one scope',
  ],
  [
    'listen: { sockets: [{ path: /x, grant: { scopes: [verify, admin] } }] }',
    'listen.sockets[0].grant.scopes[1]: must be one of verify, use, manage',
  ],
  [
    'listen: { sockets: [{ path: /x, grant: { scopes: [use, "coupons:read"], product: A } }] }',
    'listen.sockets[0].grant.product: cannot be given with a coupon scope',
  ],
  [
    `${agent}products: [{ key: B, secret: b }]\nlisten: { sockets: [{ path: /x, grant: { scopes: [use], product: A } }] }`,
    'listen: a socket grants a product that is not in products',
  ],
  [
    'listen: { header_aliases: { api_key: [a b] } }',
    'listen.header_aliases.api_key[0]: must be the name of an HTTP header',
  ],
  [
    'listen: { header_aliases: { api_key: [x], product_secret: [X] } }',
    'listen.header_aliases.api_key: names a header that already has a meaning',
  ],
  ...['X-Request-Id', 'Idempotency-Key', 'Latchkey-Instance', 'Host', 'Origin', 'Content-Type', 'Prefer'].map(
    (name): [string, string] => [
      `listen: { header_aliases: { product_secret: [${name}] } }`,
      'listen.header_aliases.api_key: names a header that already has a meaning',
    ],
  ),
  [
    'listen: { dialect: payhip, header_aliases: { product_secret: [Payhip-Api-Key] } }',
    'listen.header_aliases: takes the product secret from the header that carries the API key in this dialect',
  ],
  ...['*', 'https://*.x', 'https://x/path', 'https://a@x', 'x.example', 'null ', 'https://'].map(
    (origin): [string, string] => [
      `listen: { allowed_origins: ["${origin}"] }`,
      'listen.allowed_origins[0]: must be an origin',
    ],
  ),
  ['listen: { dialect: other }', 'listen.dialect: must be one of specification, payhip'],
  ['listen: { allowed_hosts: ["https://x"] }', 'listen.allowed_hosts[0]: must be a host name'],
  ['listen: true', 'listen: must be a mapping'],
  ['state_dir: ""', 'state_dir: must be a path'],
  ['upstream: { base_url: "ftp://x" }', 'upstream.base_url: must be an http or https URL'],
  ['upstream: { base_url: "http://x?a" }', 'upstream.base_url: must be an http or https URL'],
  ['upstream: { base_url: "http://x/#" }', 'upstream.base_url: must be an http or https URL'],
  ['upstream: { base_url: "http://u:p@x" }', 'upstream.base_url: must be an http or https URL'],
  ['upstream: { base_url: "http://x/api/v2/" }', 'upstream.base_url: must be an http or https URL'],
  [
    'upstream: { base_url: "http://x/api/v2/license/verify" }',
    'upstream.base_url: must be an http or https URL',
  ],
  ['upstream: { base_url: "http://x/shop/sync/v1" }', 'upstream.base_url: must be an http or https URL'],
  [
    `${agent}products: [{ key: "https://payhip.com/b/k9Ew", secret: s }]`,
    'products[0].key: must be the key of the product',
  ],
  [
    'upstream: { base_url: "http://x", headers: { api_key: a, product_secret: A } }',
    'upstream.headers.product_secret: must not be the same',
  ],
  ['upstream: { base_url: "http://x", timeout: 10 }', 'upstream.timeout: must be a duration'],
  ['upstream: { base_url: "http://x", timeout: 25d }', 'upstream.timeout: must be a duration'],
  ['upstream: { base_url: "http://x", timeout: 0s }', 'upstream.timeout: must be a duration'],
  [
    'upstream: { base_url: "http://x", headers: { product_secret: payhip-api-key } }',
    'upstream.headers.product_secret: must not be the same',
  ],
  ['upstream: { base_url: "http://x", dialect: other }', 'upstream.dialect: must be one of specification'],
  ['upstream: { base_url: "http://x", connect_to: "a:0" }', 'upstream.connect_to: must be an address or'],
  ['upstream: { base_url: "http://x", connect_to: "https://a" }', 'upstream.connect_to: must be an address'],
  [
    'upstream: { base_url: "http://x", connect_to: a, proxy: "http://p" }',
    'upstream.connect_to: cannot be given with a proxy',
  ],
  ['upstream: { base_url: "http://x", user_agent: "a\\nb" }', 'upstream.user_agent: must be one line'],
  ['upstream: { base_url: "http://x", proxy: "not a url" }', 'upstream.proxy: must be an http or https URL'],
  [`${agent}products: [{ key: A }]`, 'products[0].secret: is missing'],
  [
    'upstream: { store: gumroad }\nproducts: [{ key: A, secret: a-secret }]',
    'products[0].secret: must not be given: this store has none',
  ],
  ['upstream: { store: gumroad, dialect: payhip }', 'upstream.store: cannot be given with dialect'],
  [
    'upstream: { store: gumroad, api_key: a-secret }',
    'upstream.store: cannot be given with dialect or api_key',
  ],
  ['upstream: { base_url: "http://x", access_token: t }', 'upstream.access_token: is only for a store'],
  ['upstream: { store: paddle, base_url: "http://x" }', 'upstream.store: must be one of gumroad'],
  [
    `${agent}products: [{ key: A, secret: a }, { key: A, secret: b }]`,
    'products: the same key is given twice',
  ],
  [
    `${agent}products: [{ key: A, secret: a }, { key: B, secret: a }]`,
    'products: the same secret is given twice',
  ],
  [
    'products: [{ key: A, secret: a }]',
    'products: are only for an agent or a holder: set upstream.base_url or leases.issuer',
  ],
  ['freshness: { grace: 1000001d }', 'freshness.grace: must be a duration, 0 or above'],
  ['freshness: { stale: 15d }', 'freshness.stale: must not be longer than grace'],
  ['sync: { backoff: { first: 1h } }', 'sync.backoff.first: must not be longer than max'],
  ['sync: { writers: none }', 'sync.writers: must be one of many, single'],
  ['sync: { rate: 0 }', 'sync.rate: must be a number above 0'],
  ['sync: { concurrency: 1.5 }', 'sync.concurrency: must be a whole number above 0'],
  ['limits: { body_bytes: 16KB }', 'limits.body_bytes: must be a size'],
  ['limits: { rate: fast }', 'limits.rate: must be a number, 0 or above'],
  ['{}\n---\n{}', 'file: is not valid YAML: multiple docs'],
  ['log: {}\nlog: {}', 'file: is not valid YAML: duplicate key'],
  ['? [log]\n: {}', 'file: is not valid YAML: non string key'],
  ['log: {}\nstate_dir: /srv/donn\u{FFFD}es', 'file: is not UTF-8 text (from'],
  ['\u{FFFD}\u{FFFD}l\0o\0g\0:\0', 'file: is not UTF-8 text (from'],
  ['log: &a {}\nsync: *b', 'file: has an alias: put quotes around text that begins with *'],
  ['log: &a { level: *a }', 'file: has an alias'],
  ['- a', 'file: must be a mapping'],
  ['__proto__: { log: {} }', '__proto__: unknown key'],
])('the configuration `%s` is refused: %s', (text, error) => {
  const errors = errorsOf({ text });
  expect(errors).toHaveLength(1);
  expect(errors[0]).toContain(error);
});

test('a syntax error in a file or a variable is reported with its line or its variable', () => {
  expect(errorsOf({ text: 'log:\n  level: info\n\tformat: json' })[0]).toContain(`${here} line 3`);
  expect(errorsOf({ environment: { LATCHKEY_PRODUCTS: '[{' } })[0]).toContain(
    'environment LATCHKEY_PRODUCTS',
  );
});

test('an error names the environment variable that set the value, even if other variables have similar names', () => {
  const environment = {
    LATCHKEY_UPSTREAM__BASE_URL: 'ftp://x',
    LATCHKEY_UPSTREAM__TIMEOUT: '1s',
    LATCHKEY_UPSTREAM__USER_AGENT: 'x',
  };
  expect(errorsOf({ environment })).toEqual([
    expect.stringContaining('(from environment LATCHKEY_UPSTREAM__BASE_URL)'),
  ]);
});

test.each([
  ['that begins at 1', ['1']],
  ['with a gap', ['0', '2']],
])('single list items from the environment %s are refused as not a list', (_, positions) => {
  const items = positions.flatMap((at) => [
    [`LATCHKEY_PRODUCTS__${at}__KEY`, `P${at}`],
    [`LATCHKEY_PRODUCTS__${at}__SECRET`, `s${at}`],
  ]);
  const environment = { LATCHKEY_UPSTREAM__BASE_URL: 'http://localhost', ...Object.fromEntries(items) };
  expect(errorsOf({ environment })).toEqual([
    `products: must be a list (from environment LATCHKEY_PRODUCTS__${positions.at(-1)}__SECRET)`,
  ]);
});

test.each([
  ['the nearest key is suggested', { LATCHKEY_LISTEN__SOKETS: 'x' }, 'did you mean sockets?'],
  [
    'a key two letters away is suggested',
    { LATCHKEY_LISTEN__SOCKET_MODEST: 'x' },
    'did you mean socket_mode?',
  ],
  ['a key three letters away is not suggested', { LATCHKEY_SYNC__WRITERSABC: 'x' }, 'unknown key (from'],
  [
    'a key of three letters with two different letters is not suggested',
    { LATCHKEY_LISTEN__TXX: 'x' },
    'unknown key (from',
  ],
])('the error of an unknown key suggests a key at most two letters away: %s', (_, environment, told) => {
  expect(errorsOf({ environment })).toEqual([expect.stringContaining(told)]);
});

test('an error in a default value names the default as its source', () => {
  expect(errorsOf({ environment: { XDG_STATE_HOME: `/${'x'.repeat(100)}` } })).toEqual([
    'listen.socket: must be a path of at most 107 bytes, or false (from default)',
  ]);
});

test('the error of a variable with one underscore between levels suggests the nested key', () => {
  expect(errorsOf({ environment: { LATCHKEY_LOG_LEVEL: 'debug' } })).toEqual([
    'log_level: unknown key; did you mean log.level? (from environment LATCHKEY_LOG_LEVEL)',
  ]);
});

test('control characters in an unknown key are replaced and a long key is cut', () => {
  expect(errorsOf({ text: `"a\\nb${'c'.repeat(100)}": 1` })).toEqual([
    `a?b${'c'.repeat(61)}: unknown key (from ${here} line 1)`,
  ]);
  expect(errorsOf({ text: '"log_\\nb": 1' })).toEqual([
    `log_?b: unknown key; did you mean log.?b? (from ${here} line 1)`,
  ]);
});

test('unusual but valid values are accepted', () => {
  for (const text of [
    'listen: { tcp: "[::1]:0" }',
    'listen: { tcp: "localhost:80" }',
    'listen: { tcp: ["127.0.0.1:80", "[::1]:80"] }',
    'listen: { tcp: "127.1.2.3:80" }',
    'listen: { tcp: "0.0.0.0:80", allow_remote: true }',
    'listen: { tcp: false, socket: false, sockets: [{ path: /x }] }',
    'freshness: { fresh: 1ms, stale: 1ms, grace: 1ms, refresh: 1ms, unknown: 0, gone: 0s }',
    'limits: { body_bytes: 1000, header_bytes: 1GiB, rate: 0.5 }',
    'sync: { max_pending: 1e6 }',
    'listen: { socket_mode: 660, sockets: [{ path: /x, grant: { scopes: [use], product: A } }] }',
    `${agent}listen: { sockets: [{ path: /x, grant: { scopes: [use, "coupons:read"] } }] }`,
    'upstream: { base_url: "http://x", connect_to: "a:443", headers: { api_key: a, product_secret: b } }',
    'listen: { tcp: "LocalHost:65535", drain_delay: 10m }',
    `listen: { socket: /${'x'.repeat(106)} }`,
    'freshness: { grace: 1000000d, refresh: 24d }',
    'sync: { backoff: { first: 1m, max: 1m } }',
    agent,
  ])
    expect(errorsOf({ text })).toEqual([]);
});

test.each(['', '\n', '# upstream:\n#   base_url: https://api.example.com\n', '---\n', 'null\n', '~'])(
  'a configuration file without settings is refused: %j',
  (text) => {
    const [error, ...others] = errorsOf({ text });
    expect(others).toEqual([]);
    expect(error).toMatch(
      /^file: has no settings: write some, or \{\} for a store with every default \(from .*config\.yaml line \d\)$/,
    );
  },
);

test('a missing colon is reported in one line of plain words', () => {
  const where = 'is a colon missing after a key, or the blank after the colon?';
  for (const text of [
    'listen\n  tcp: 127.0.0.1:1\nlog\n  level: info\nsync: {}\n',
    'state_dir:/x\nlisten: {}\nlog: {}\n',
  ])
    expect(errorsOf({ text })).toEqual([`file: is not valid YAML: ${where} (from ${here} line 1)`]);
});

test('{} is a configuration with every default', () => {
  expect(errorsOf({ text: '{}' })).toEqual([]);
});
