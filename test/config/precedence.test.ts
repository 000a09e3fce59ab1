import { describe, expect, test } from 'vitest';
import { parseConfiguration, type Location, parseLocation } from '../../src/config/load.ts';
import {
  configurationOf,
  denied,
  errorsOf,
  folder,
  type ConfigInput,
  configSources,
  notADirectory,
} from '../support/builders/config-builders.ts';

const levelOf = (what: Parameters<typeof configurationOf>[0]) => configurationOf(what).log.level;

test('flags win over the environment, the environment over the file, and the file over the default', () => {
  const text = 'log: { level: warn }';
  const environment = { LATCHKEY_LOG__LEVEL: 'error' };
  expect(levelOf({})).toBe('info');
  expect(levelOf({ text })).toBe('warn');
  expect(levelOf({ text, environment })).toBe('error');
  expect(levelOf({ text, environment, flags: { log: { level: 'debug' } } })).toBe('debug');
});

test('a value that a stronger source does not set comes from a weaker source', () => {
  const { sync } = configurationOf({
    text: 'sync: { concurrency: 9, backoff: { first: 2s } }',
    environment: { LATCHKEY_SYNC__BACKOFF__MAX: '1m' },
    flags: { sync: { rate: 50, concurrency: undefined } },
  });
  expect(sync).toMatchObject({ rate: 50, concurrency: 9, backoff: { firstMs: 2000, maxMs: 60_000 } });
});

test('null or an empty variable restores the default', () => {
  const text = 'log: { level: null }\nsync:\nupstream: { base_url: "http://localhost" }';
  const configuration = configurationOf({
    text,
    environment: { LATCHKEY_UPSTREAM: '', LATCHKEY_LISTEN__TCP: '' },
  });
  expect(configuration.log.level).toBe('info');
  expect(configuration.role).toBe('authority');
  expect(configuration.listen.tcp).toEqual([{ host: '127.0.0.1', port: 8787 }]);
  for (const nothing of ['', ' ', 'null', '~']) {
    const environment = { LATCHKEY_UPSTREAM__PROXY: nothing };
    const behind = 'upstream: { base_url: "http://localhost", proxy: "http://proxy" }';
    expect(configurationOf({ text: behind, environment }).upstream?.proxy).toBeNull();
  }
});

test('an environment variable contains plain text, or lists and mappings as YAML or JSON', () => {
  const configuration = configurationOf({
    environment: {
      LATCHKEY_LISTEN__TCP: 'false',
      LATCHKEY_LISTEN__ALLOWED_HOSTS: '[a.example, "b.example"]',
      LATCHKEY_METRICS__OPEN: 'true',
      LATCHKEY_SYNC__RATE: '0.5',
      LATCHKEY_UPSTREAM: '{"base_url": "http://localhost:1/x"}',
      LATCHKEY_UPSTREAM__API_KEY: '*: #1',
      LATCHKEY_PRODUCTS: '[{key: A, secret: 0012}]',
    },
  });
  expect(configuration.listen.tcp).toEqual([]);
  expect(configuration.listen.allowedHosts).toEqual(['a.example', 'b.example']);
  expect(configuration.metrics.open).toBe(true);
  expect(configuration.sync.rate).toBe(0.5);
  expect(configuration.upstream?.baseUrl).toBe('http://localhost:1/x');
  expect(configuration.upstream?.apiKey?.reveal()).toBe('*: #1');
  expect(configuration.products[0]?.secret?.reveal()).toBe('0012');
});

test('an environment variable can set a single item of a list by its position', () => {
  const { products } = configurationOf({
    text: 'upstream: { base_url: "http://localhost" }\nproducts: [{ key: A }]',
    environment: {
      LATCHKEY_PRODUCTS__0__SECRET: 'one',
      LATCHKEY_PRODUCTS__1__KEY: 'B',
      LATCHKEY_PRODUCTS__1__SECRET_FILE: 'b.secret',
    },
    files: { '/work/b.secret': 'two' },
  });
  expect(products.map(({ key, secret }) => [key, secret?.reveal()])).toEqual([
    ['A', 'one'],
    ['B', 'two'],
  ]);
});

test('a variable for a list item wins over the variable for the whole list', () => {
  const parts = { LATCHKEY_PRODUCTS__0__SECRET: 'of its own', LATCHKEY_PRODUCTS: '[{ key: A, secret: a }]' };
  const environment = { LATCHKEY_UPSTREAM__BASE_URL: 'http://localhost', ...parts };
  expect(configurationOf({ environment }).products[0]?.secret?.reveal()).toBe('of its own');
});

test('an environment variable can change the eleventh item of a list in the file', () => {
  const items = Array.from({ length: 11 }, (_, index) => `{ key: P${index}, secret: s${index} }`);
  const { products } = configurationOf({
    text: `upstream: { base_url: "http://localhost" }\nproducts: [${items.join(', ')}]`,
    environment: { LATCHKEY_PRODUCTS__10__SECRET: 'ten', LATCHKEY_PRODUCTS__2__SECRET: 'two' },
  });
  expect(products).toHaveLength(11);
  expect([products[2], products[10]].map((item) => item?.secret?.reveal())).toEqual(['two', 'ten']);
});

test.each([
  ['brackets, braces and quotation marks further on are text', 'a"b {c} [d] #e', 'a"b {c} [d] #e'],
  ['white space around it is dropped, as a file with CRLF leaves it', ' hush \r', 'hush'],
  ['a text in quotes is what is in them', '"null"', 'null'],
])('an environment variable is read literally: %s', (_, value, secret) => {
  const environment = { LATCHKEY_UPSTREAM__BASE_URL: 'http://localhost', LATCHKEY_UPSTREAM__API_KEY: value };
  expect(configurationOf({ environment }).upstream?.apiKey?.reveal()).toBe(secret);
});

test('text that looks like a number is not changed', () => {
  const { products, listen } = configurationOf({
    text: 'upstream: { base_url: "http://localhost" }\nlisten: { socket_mode: 0660 }\nproducts: [{ key: 1e5, secret: 00123456789012345678901 }]',
  });
  expect(products[0]?.key).toBe('1e5');
  expect(products[0]?.secret?.reveal()).toBe('00123456789012345678901');
  expect(listen.socketMode).toBe(0o660);
});

test('relative paths in a file start at its folder, and all others at the working directory', () => {
  const { stateDir, listen, upstream } = configurationOf({
    text: 'state_dir: state\nlisten: { socket: a.sock, sockets: [{ path: b.sock }] }\nupstream: { base_url: "http://localhost", ca_file: ../ca.pem }',
    environment: { LATCHKEY_LISTEN__SOCKET: 'c.sock' },
    flags: { state_dir: 'other' },
  });
  expect(stateDir).toBe('/work/other');
  expect(listen.socket).toBe('/work/c.sock');
  expect(listen.sockets[0]?.path).toBe(`${folder}/b.sock`);
  expect(upstream?.caFile).toBe('/srv/ca.pem');
});

const fileOf = (what: Parameters<typeof configSources>[0]) => {
  const result = parseConfiguration(configSources(what));
  return result.ok ? result.file : result.errors;
};

describe('the file is found in this order', () => {
  const [local, user, system] = [
    '/work/latchkey.yaml',
    '/home/ada/.config/latchkey/config.yaml',
    '/etc/latchkey/config.yaml',
  ];
  const files = {
    '/work/a.yaml': '{}',
    '/work/b.yaml': '{}',
    [local]: '{}',
    [user]: '{}',
    [system]: '{}',
    '/x/latchkey/config.yaml': '{}',
  };
  const variable = { LATCHKEY_CONFIG: 'b.yaml' };
  const named = { flags: { state_dir: 's' } };
  const distrusted = { local: { unsafe: 'it belongs to user 7' } } as const;
  const without = (...gone: string[]): Record<string, string> =>
    Object.fromEntries(Object.entries(files).filter(([path]) => !gone.includes(path)));

  test.for<[string, ConfigInput, string | null]>([
    ['--config', { file: 'a.yaml', environment: variable }, '/work/a.yaml'],
    ['--config, beside --state-dir', { file: 'a.yaml', ...named }, '/work/a.yaml'],
    ['LATCHKEY_CONFIG', { environment: variable }, '/work/b.yaml'],
    ['LATCHKEY_CONFIG, beside --state-dir', { environment: variable, ...named }, '/work/b.yaml'],
    ['an empty LATCHKEY_CONFIG is none', { environment: { LATCHKEY_CONFIG: '' } }, local],
    ['./latchkey.yaml', {}, local],
    ['--state-dir stands before ./latchkey.yaml', named, user],
    ['so does LATCHKEY_STATE_DIR', { environment: { LATCHKEY_STATE_DIR: '/s' } }, user],
    ['an empty LATCHKEY_STATE_DIR is none', { environment: { LATCHKEY_STATE_DIR: '' } }, local],
    ['./latchkey.yaml that cannot be relied on is passed over', distrusted, user],
    ['the user’s file', { files: without(local) }, user],
    [
      'the user’s file, elsewhere',
      { files: without(local), environment: { XDG_CONFIG_HOME: '/x' } },
      '/x/latchkey/config.yaml',
    ],
    ['the system’s file', { files: without(local, user) }, system],
    [
      'the system’s file, where the user’s directory is a file',
      { files: { ...files, [user]: notADirectory() }, local: 'absent' },
      system,
    ],
    ['none', { files: without(local, user, system) }, null],
  ])('%s', ([, sources, found]) => {
    expect(fileOf({ files, ...sources })).toBe(found);
  });
});

test.for<[string, ConfigInput, Partial<Location>]>([
  ['--state-dir', { text: 'state_dir: /a', flags: { state_dir: '/b' } }, { stateDir: '/b', namedBy: 'flag' }],
  [
    'LATCHKEY_STATE_DIR',
    { text: 'state_dir: /a', environment: { LATCHKEY_STATE_DIR: '/c' } },
    { stateDir: '/c', namedBy: 'environment' },
  ],
  ['the file', { text: 'state_dir: a' }, { stateDir: `${folder}/a`, namedBy: 'file' }],
  [
    'the default, although there is a file',
    { text: '{}' },
    { stateDir: '/home/ada/.local/state/latchkey', namedBy: 'default', file: `${folder}/config.yaml` },
  ],
  [
    'the default, and every place for a file was looked at',
    {},
    {
      stateDir: '/home/ada/.local/state/latchkey',
      namedBy: 'default',
      file: null,
      searchedPaths: [
        '/work/latchkey.yaml',
        '/home/ada/.config/latchkey/config.yaml',
        '/etc/latchkey/config.yaml',
      ],
    },
  ],
])('the location of the daemon says which source names the state directory: %s', ([, sources, location]) => {
  expect(parseLocation(configSources(sources))).toMatchObject({ ok: true, location });
});

test('a named file must exist, and a default file must be readable if it exists', () => {
  expect(errorsOf({ file: 'a.yaml' })).toEqual([
    'file: cannot read /work/a.yaml: no such file or directory (from flag)',
  ]);
  expect(errorsOf({ environment: { LATCHKEY_CONFIG: '/b.yaml' } })).toEqual([
    'file: cannot read /b.yaml: no such file or directory (from environment LATCHKEY_CONFIG)',
  ]);
  expect(errorsOf({ files: { '/etc/latchkey/config.yaml': denied() } })).toEqual([
    'file: cannot read /etc/latchkey/config.yaml: permission denied (from default)',
  ]);
});

test('variables that Kubernetes sets for a service called latchkey are ignored', () => {
  expect(
    errorsOf({
      environment: {
        LATCHKEY_SERVICE_HOST: '10.0.0.1',
        LATCHKEY_SERVICE_PORT_HTTP: '80',
        LATCHKEY_PORT: 'tcp://10.0.0.1:80',
        LATCHKEY_PORT_80_TCP_ADDR: '10.0.0.1',
      },
    }),
  ).toEqual([]);
  expect(errorsOf({ environment: { LATCHKEY_PORT: '80' } })).toEqual([
    'port: unknown key (from environment LATCHKEY_PORT)',
  ]);
});

test('the default log format is pretty on a terminal and json elsewhere', () => {
  const formatOn = (isTerminal: boolean, text = 'log: { level: info }'): string => {
    const result = parseConfiguration({ ...configSources({ text }), isTerminal });
    return result.ok ? result.configuration.log.format : 'refused';
  };
  expect([formatOn(true), formatOn(false)]).toEqual(['pretty', 'json']);
  expect(formatOn(true, 'log: { format: json }')).toBe('json');
});
