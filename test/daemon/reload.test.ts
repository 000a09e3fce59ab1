import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { changedKeys } from '../../src/config/configuration.ts';
import { LiveConfiguration, reloadedConfiguration } from '../../src/daemon/live-configuration.ts';
import { Remembering } from '../support/app/remembering.ts';
import { configurationOf } from '../support/builders/config-builders.ts';
import { eventually } from '../support/harness/agent-harness.ts';
import { listen } from '../support/network/listener.ts';

const running = configurationOf({
  flags: {
    upstream: { base_url: 'https://a.example', api_key: 'one' },
    products: [{ key: 'A', secret: 'one' }],
  },
});

/** Every setting has another value than in `running`. */
const wanted = configurationOf({
  flags: {
    state_dir: '/other',
    listen: {
      tcp: '0.0.0.0:1',
      socket: '/other/latchkey.sock',
      socket_mode: '0660',
      sockets: [
        {
          path: '/other/shop.sock',
          mode: '0660',
          group: 'shop',
          grant: { scopes: ['use'], product: 'B' },
        },
      ],
      header_aliases: { api_key: ['x-key'], product_secret: ['x-secret'] },
      allow_remote: true,
      allowed_hosts: ['b.example'],
      dialect: 'payhip',
      unknown: 'reset',
      allowed_origins: ['https://b.example'],
    },
    upstream: {
      base_url: 'https://b.example',
      dialect: 'payhip',
      api_key: 'two',
      headers: { api_key: 'x-key', product_secret: 'x-secret' },
      user_agent: 'shop/1',
      timeout: '1s',
      probe: '1s',
      ca_file: '/etc/ca.pem',
      proxy: 'http://me:hush@proxy:3128',
    },
    products: [
      { key: 'A', name: 'The A', secret: 'two' },
      { key: 'B', secret: 'three' },
    ],
    freshness: { fresh: '1s', stale: '2s', grace: '3s', refresh: '1s', unknown: '1s', gone: '1s' },
    sync: {
      rate: 1,
      concurrency: 1,
      reconcile_after: '1s',
      writers: 'single',
      on_uncertain: 'hold',
      max_pending: 1,
      backoff: { first: '2s', max: '2s' },
      breaker: { failures: 1, open: '1s' },
    },
    limits: {
      header_timeout: '1s',
      header_count: 1,
      header_bytes: 1,
      request_timeout: '1s',
      body_bytes: 1,
      parameters: 1,
      connections: 1,
      rate: 1,
      misses: 1,
      failed_rate: 1,
    },
    metrics: { open: true },
    log: { level: 'debug', format: 'pretty' },
  },
});

test('SIGHUP applies secrets, products, freshness, sync, rates of callers, metrics and the log level.', () => {
  expect(changedKeys(running, reloadedConfiguration(running, wanted))).toEqual([
    'upstream.api_key',
    'upstream.probe',
    'products[0].name',
    'products[0].secret',
    ...['fresh', 'stale', 'grace', 'refresh', 'unknown', 'gone'].map((key) => `freshness.${key}`),
    ...['rate', 'concurrency', 'reconcile_after', 'writers', 'on_uncertain', 'max_pending'].map(
      (key) => `sync.${key}`,
    ),
    'sync.backoff.first',
    'sync.backoff.max',
    'sync.breaker.failures',
    'sync.breaker.open',
    'limits.rate',
    'limits.misses',
    'limits.failed_rate',
    'metrics.open',
    'log.level',
    'products[1].key',
    'products[1].name',
    'products[1].secret',
    ...['seats', 'hold', 'term', 'refresh', 'lease_email'].map((key) => `products[1].${key}`),
  ]);
});

test('The state directory, the listeners and the connection to the upstream change only at a restart.', () => {
  expect(changedKeys(reloadedConfiguration(running, wanted), wanted)).toEqual([
    'state_dir',
    'listen.tcp',
    'listen.socket',
    'listen.socket_mode',
    'listen.sockets',
    'listen.dialect',
    'listen.unknown',
    'listen.header_aliases.api_key',
    'listen.header_aliases.product_secret',
    'listen.allow_remote',
    'listen.allowed_hosts',
    'listen.allowed_origins',
    'upstream.base_url',
    'upstream.dialect',
    'upstream.headers.api_key',
    'upstream.headers.product_secret',
    'upstream.user_agent',
    'upstream.timeout',
    'upstream.ca_file',
    'upstream.proxy',
    ...['header_timeout', 'header_count', 'header_bytes', 'request_timeout', 'body_bytes'].map(
      (key) => `limits.${key}`,
    ),
    'limits.parameters',
    'limits.connections',
    'log.format',
    ...['path', 'mode', 'group', 'grant.scopes[0]', 'grant.product'].map((key) => `listen.sockets[0].${key}`),
    'listen.header_aliases.api_key[0]',
    'listen.header_aliases.product_secret[0]',
    'listen.allowed_hosts[0]',
    'listen.allowed_origins[0]',
  ]);
});

test('A reload never changes the role: upstream and products stay, and the other settings apply.', () => {
  const authority = configurationOf({ flags: { sync: { rate: 9 } } });
  const agent = reloadedConfiguration(running, authority);
  expect(agent).toEqual({ ...running, sync: authority.sync });
  expect(reloadedConfiguration(authority, running)).toEqual({ ...authority, sync: running.sync });
});

test('The loops get the settings of the current configuration, also after a reload.', () => {
  const live = new LiveConfiguration(running);
  expect(live.sync()).toMatchObject({ concurrency: running.sync.concurrency, productIds: ['A'] });
  live.replace(wanted);
  expect(live.sync()).toMatchObject({
    concurrency: 1,
    productIds: ['A', 'B'],
    policy: { reconcileAfterMs: 1000 },
  });
});

test('After a reload the upstream is asked with the new secret at once, also if it has refused the old one.', async () => {
  let refusals = 0;
  const server = createServer((request, response) => {
    if (request.headers['product-secret-key'] === 'the-right-secret') {
      response.end(JSON.stringify({ data: { license_key: 'KEY', enabled: true, uses: 1, date: null } }));
      return;
    }
    refusals += 1;
    response.writeHead(401).end('{}');
  });
  await using upstream = await listen(server);
  await using agent = new Remembering();
  const treeOf = (secret: string) => ({
    upstream: { base_url: upstream.url },
    products: [{ key: 'EDITOR', secret }],
  });
  const verify = async (secret: string): Promise<number> =>
    (await agent.verify('KEY', `product-secret-key: ${secret}`)).status;
  await agent.start(treeOf('a-wrong-secret'));
  expect(await verify('a-wrong-secret')).toBe(503);
  // The second refusal keeps the secret from being tested for 15 minutes.
  agent.time.advance(2_000);
  await eventually(() => refusals > 1);
  agent.reload(treeOf('the-right-secret'));
  expect(await verify('the-right-secret')).toBe(200);
});
