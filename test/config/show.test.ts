import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { effective } from '../../src/config/configuration.ts';
import { stringify } from 'yaml';
import { configurationOf } from '../support/builders/config-builders.ts';

const durationMs = fc.integer({ min: 1, max: 24 * 86_400_000 });
const duration = durationMs.map((ms) => `${ms}ms`);
const count = fc.integer({ min: 1, max: 1_000_000 });
const word = fc.stringMatching(/^[a-zA-Z0-9]{1,12}$/);
const header = word.map((name) => `x-${name}`);
const mode = fc.integer({ min: 0, max: 0o777 }).map((bits) => `0${bits.toString(8).padStart(3, '0')}`);
const credential = fc.stringMatching(/^[!-~]{1,20}$/);
const optional = { requiredKeys: [] };

const listen = fc.record(
  {
    tcp: fc.oneof(
      fc.constant(false),
      fc.integer({ min: 0, max: 65_535 }).map((port) => `[::1]:${port}`),
      fc.integer({ min: 0, max: 65_535 }).map((port) => [`127.0.0.1:${port}`, `[::1]:${port}`]),
    ),
    socket: fc.constant('/run/a.sock'),
    socket_mode: mode,
    sockets: fc.array(
      fc.record({
        path: word.map((name) => `/run/x/${name}`),
        mode,
        group: fc.option(word),
        grant: fc.option(fc.constant({ scopes: ['verify', 'use'], product: null })),
      }),
      { maxLength: 1 },
    ),
    header_aliases: fc.record({ api_key: fc.uniqueArray(header, { maxLength: 1 }) }, optional),
    allow_remote: fc.boolean(),
    allowed_origins: fc.array(fc.constantFrom('https://a.example', 'http://[::1]:3000', 'app://b', 'null')),
    allowed_hosts: fc.array(fc.oneof(fc.domain(), fc.ipV4(), fc.ipV6())),
  },
  optional,
);
/** Where to connect: over a proxy, or to an address, or neither. */
const way = fc.oneof(
  fc.constant({}),
  fc.record({ proxy: fc.constantFrom('http://proxy:3128', 'http://me:hush@proxy') }),
  fc.record({ connect_to: fc.constantFrom('203.0.113.7', '[::1]:8443', '::1', 'store.internal:443') }),
);
const upstreamKeys = fc.record(
  {
    base_url: fc.webUrl({ validSchemes: ['http', 'https'] }),
    api_key: credential,
    timeout: duration,
    probe: duration,
    ca_file: fc.constant('/etc/ca.pem'),
    dialect: fc.constantFrom('specification', 'payhip'),
    user_agent: fc.constant('Mozilla/5.0 (compatible)'),
  },
  { requiredKeys: ['base_url'] },
);
const upstream = fc.tuple(upstreamKeys, way).map(([keys, leads]) => ({ ...keys, ...leads }));
const agent = fc.record(
  {
    upstream,
    products: fc.uniqueArray(fc.record({ key: word, secret: credential }), {
      comparator: (one, other) => one.key === other.key || one.secret === other.secret,
    }),
  },
  { requiredKeys: ['upstream'] },
);
const rest = fc.record(
  {
    listen,
    freshness: fc
      .array(durationMs, { minLength: 3, maxLength: 3 })
      .map((ages) => ages.sort((left, right) => left - right).map((age) => `${age}ms`))
      .map(([fresh, stale, grace]) => ({ fresh, stale, grace })),
    sync: fc.record(
      {
        rate: fc.oneof(count, fc.constantFrom(0.5, 2.25)),
        reconcile_after: duration,
        writers: fc.constantFrom('many', 'single'),
        max_pending: count,
        backoff: duration.map((wait) => ({ first: wait, max: wait })),
        breaker: fc.record({ failures: count, open: duration }),
      },
      optional,
    ),
    limits: fc.record(
      {
        header_timeout: duration,
        body_bytes: count,
        rate: count,
      },
      optional,
    ),
    log: fc.record({ level: fc.constantFrom('debug', 'silent'), format: fc.constantFrom('json', 'pretty') }),
  },
  optional,
);

test('a shown configuration can be read again as flags, JSON and YAML', () => {
  fc.assert(
    fc.property(rest, fc.option(agent, { nil: {} }), (sections, role) => {
      const shown = effective(configurationOf({ flags: { ...sections, ...role } }));
      expect(effective(configurationOf({ flags: shown }))).toEqual(shown);
      expect(effective(configurationOf({ text: JSON.stringify(shown) }))).toEqual(shown);
      expect(effective(configurationOf({ text: stringify(shown) }))).toEqual(shown);
    }),
  );
});

test('the shown configuration of an authority reads back as the same configuration', () => {
  fc.assert(
    fc.property(rest, (sections) => {
      const configuration = configurationOf({ flags: sections });
      expect(configurationOf({ flags: effective(configuration) })).toEqual(configuration);
    }),
  );
});
