import { expect, test } from 'vitest';
import { parseConfiguration } from '../../src/config/load.ts';
import { absent, configurationOf, denied, faultsOf, folder, given } from '../support/config-given.ts';

const levelOf = (what: Parameters<typeof configurationOf>[0]) => configurationOf(what).log.level;

test('flags beat the environment, the environment beats the file, the file beats the default', () => {
  const text = 'log: { level: warn }';
  const environment = { LATCHKEY_LOG__LEVEL: 'error' };
  expect(levelOf({})).toBe('info');
  expect(levelOf({ text })).toBe('warn');
  expect(levelOf({ text, environment })).toBe('error');
  expect(levelOf({ text, environment, flags: { log: { level: 'debug' } } })).toBe('debug');
});

test('what a stronger source does not mention is kept from the weaker ones', () => {
  const { sync } = configurationOf({
    text: 'sync: { lanes: 9, backoff: { first: 2s } }',
    environment: { LATCHKEY_SYNC__BACKOFF__MAX: '1m' },
    flags: { sync: { rate: 50, lanes: undefined } },
  });
  expect(sync).toMatchObject({ rate: 50, lanes: 9, backoff: { firstMs: 2000, maxMs: 60_000 } });
});

test('null, or an empty variable, is the same as not given', () => {
  const text = 'log: { level: null }\nsync:\nupstream: { base_url: "http://localhost" }';
  const configuration = configurationOf({
    text,
    environment: { LATCHKEY_UPSTREAM: '', LATCHKEY_LISTEN__TCP: '' },
  });
  expect(configuration.log.level).toBe('info');
  expect(configuration.role).toBe('authority');
  expect(configuration.listen.tcp?.port).toBe(8787);
});

test('a variable takes scalars as they are, and lists and mappings as YAML or JSON', () => {
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
  expect(configuration.listen.tcp).toBeNull();
  expect(configuration.listen.allowedHosts).toEqual(['a.example', 'b.example']);
  expect(configuration.metrics.open).toBe(true);
  expect(configuration.sync.rate).toBe(0.5);
  expect(configuration.upstream?.baseUrl).toBe('http://localhost:1/x');
  expect(configuration.upstream?.apiKey?.reveal()).toBe('*: #1');
  expect(configuration.products[0]?.secret.reveal()).toBe('0012');
});

test('a variable can reach into a list by position', () => {
  const { products } = configurationOf({
    text: 'upstream: { base_url: "http://localhost" }\nproducts: [{ key: A }]',
    environment: {
      LATCHKEY_PRODUCTS__0__SECRET: 'one',
      LATCHKEY_PRODUCTS__1__KEY: 'B',
      LATCHKEY_PRODUCTS__1__SECRET_FILE: 'b.secret',
    },
    files: { '/work/b.secret': 'two' },
  });
  expect(products.map(({ key, secret }) => [key, secret.reveal()])).toEqual([
    ['A', 'one'],
    ['B', 'two'],
  ]);
});

test('text that looks like a number stays the text that was written', () => {
  const { products, listen } = configurationOf({
    text: 'upstream: { base_url: "http://localhost" }\nlisten: { socket_mode: 0660 }\nproducts: [{ key: 1e5, secret: 00123456789012345678901 }]',
  });
  expect(products[0]?.key).toBe('1e5');
  expect(products[0]?.secret.reveal()).toBe('00123456789012345678901');
  expect(listen.socketMode).toBe(0o660);
});

test('relative paths start at the file that names them, or at the working directory', () => {
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

const fileOf = (what: Parameters<typeof given>[0]) => {
  const result = parseConfiguration(given(what));
  return result.ok ? result.file : result.faults;
};

test('the file is the one that is named, else that of the machine, else that of the user', () => {
  const files = {
    '/work/a.yaml': '',
    '/work/b.yaml': '',
    '/etc/latchkey/config.yaml': '',
    '/home/ada/.config/latchkey/config.yaml': '# nothing yet',
    '/x/latchkey/config.yaml': '',
  };
  const environment = { LATCHKEY_CONFIG: 'b.yaml' };
  expect(fileOf({ files, environment, file: 'a.yaml' })).toBe('/work/a.yaml');
  expect(fileOf({ files, environment })).toBe('/work/b.yaml');
  expect(fileOf({ files })).toBe('/etc/latchkey/config.yaml');
  const without = { ...files, '/etc/latchkey/config.yaml': absent() };
  expect(fileOf({ files: without })).toBe('/home/ada/.config/latchkey/config.yaml');
  expect(fileOf({ files: without, environment: { XDG_CONFIG_HOME: '/x' } })).toBe('/x/latchkey/config.yaml');
  expect(fileOf({ environment: { LATCHKEY_CONFIG: '' } })).toBeNull();
});

test('a file that is named must be there, a default one must be readable if it is there', () => {
  expect(faultsOf({ file: 'a.yaml' })).toEqual([
    'file: cannot read /work/a.yaml: no such file or directory (from flag)',
  ]);
  expect(faultsOf({ environment: { LATCHKEY_CONFIG: '/b.yaml' } })).toEqual([
    'file: cannot read /b.yaml: no such file or directory (from environment LATCHKEY_CONFIG)',
  ]);
  expect(faultsOf({ files: { '/etc/latchkey/config.yaml': denied() } })).toEqual([
    'file: cannot read /etc/latchkey/config.yaml: permission denied (from default)',
  ]);
});

test('the variables that Kubernetes sets for a service called latchkey are not ours', () => {
  expect(
    faultsOf({
      environment: {
        LATCHKEY_SERVICE_HOST: '10.0.0.1',
        LATCHKEY_SERVICE_PORT_HTTP: '80',
        LATCHKEY_PORT: 'tcp://10.0.0.1:80',
        LATCHKEY_PORT_80_TCP_ADDR: '10.0.0.1',
      },
    }),
  ).toEqual([]);
  expect(faultsOf({ environment: { LATCHKEY_PORT: '80' } })).toEqual([
    'port: unknown key (from environment LATCHKEY_PORT)',
  ]);
});

test('the log is written for people on a terminal, unless a format is chosen', () => {
  const formatOn = (isTerminal: boolean, text = 'log: { level: info }'): string => {
    const result = parseConfiguration({ ...given({ text }), isTerminal });
    return result.ok ? result.configuration.log.format : 'refused';
  };
  expect([formatOn(true), formatOn(false)]).toEqual(['pretty', 'json']);
  expect(formatOn(true, 'log: { format: json }')).toBe('json');
});
