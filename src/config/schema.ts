import type { z } from 'zod';
import { credentialHeaders } from '../domain/header-names.ts';
import type { Configuration } from './configuration.ts';
import { listenSchema } from './listen-schema.ts';
import type { Places } from './place.ts';
import { about, key, list, mapping, orAbsent, section } from './section.ts';
import * as kind from './value.ts';

const upstream = mapping({
  base_url: key(kind.baseUrl),
  api_key: key(kind.orNull(kind.secret), null),
  api_key_file: key(kind.orNull(kind.path), null),
  headers: section(
    mapping({
      api_key: key(kind.headerName, credentialHeaders.apiKey),
      product_secret: key(kind.headerName, credentialHeaders.productSecret),
    })
      .refine(
        (names) => names.api_key !== names.product_secret,
        about(['product_secret', 'api_key'], 'must not be the same header as api_key'),
      )
      .transform((names) => ({ apiKey: names.api_key, productSecret: names.product_secret })),
  ),
  timeout: key(kind.wait, '10s'),
  probe: key(kind.wait, '30s'),
  ca_file: key(kind.orNull(kind.path), null),
  proxy: key(kind.orNull(kind.proxyUrl), null),
}).transform((given) => ({
  baseUrl: given.base_url,
  apiKey: given.api_key,
  headers: given.headers,
  timeoutMs: given.timeout,
  probeMs: given.probe,
  caFile: given.ca_file,
  proxy: given.proxy,
}));

const product = mapping({
  key: key(kind.text),
  secret: key(kind.secret),
  secret_file: key(kind.orNull(kind.path), null),
}).transform((given) => ({ key: given.key, secret: given.secret }));

const freshness = mapping({
  fresh: key(kind.duration, '24h'),
  stale: key(kind.duration, '7d'),
  grace: key(kind.duration, '14d'),
  refresh: key(kind.wait, '6h'),
  unknown: key(kind.duration, '60s'),
  gone: key(kind.duration, '60s'),
})
  .refine((ages) => ages.fresh <= ages.stale, about(['fresh', 'stale'], 'must not be longer than stale'))
  .refine((ages) => ages.stale <= ages.grace, about(['stale', 'grace'], 'must not be longer than grace'))
  .transform((given) => ({
    freshMs: given.fresh,
    staleMs: given.stale,
    graceMs: given.grace,
    refreshMs: given.refresh,
    unknownMs: given.unknown,
    goneMs: given.gone,
  }));

const backoff = mapping({ first: key(kind.wait, '1s'), max: key(kind.wait, '15m') })
  .refine((waits) => waits.first <= waits.max, about(['first', 'max'], 'must not be longer than max'))
  .transform((given) => ({ firstMs: given.first, maxMs: given.max }));

const breaker = mapping({ failures: key(kind.count, 5), open: key(kind.wait, '30s') }).transform((given) => ({
  failures: given.failures,
  openMs: given.open,
}));

const sync = mapping({
  rate: key(kind.rate, 5),
  lanes: key(kind.count, 4),
  fence: key(kind.wait, '60s'),
  writers: key(kind.oneOf('many', 'single'), 'many'),
  on_doubt: key(kind.oneOf('infer', 'hold'), 'infer'),
  max_pending: key(kind.count, 1_000_000),
  backoff: section(backoff),
  breaker: section(breaker),
}).transform(({ fence, on_doubt, max_pending, ...same }) => ({
  ...same,
  fenceMs: fence,
  onDoubt: on_doubt,
  maxPending: max_pending,
}));

const limits = mapping({
  header_timeout: key(kind.wait, '5s'),
  header_count: key(kind.count, 40),
  header_bytes: key(kind.size, '8KiB'),
  request_timeout: key(kind.wait, '10s'),
  body_bytes: key(kind.size, '16KiB'),
  import_bytes: key(kind.size, '64MiB'),
  parameters: key(kind.count, 32),
  connections: key(kind.count, 256),
  rate: key(kind.rateOrNone, 0),
  misses: key(kind.rate, 2),
  failed_rate: key(kind.rate, 5),
}).transform((given) => ({
  headerTimeoutMs: given.header_timeout,
  headerCount: given.header_count,
  headerBytes: given.header_bytes,
  requestTimeoutMs: given.request_timeout,
  bodyBytes: given.body_bytes,
  importBytes: given.import_bytes,
  parameters: given.parameters,
  connections: given.connections,
  rate: given.rate,
  misses: given.misses,
  failedRate: given.failed_rate,
}));

const logLevel = key(kind.oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'), 'info');

/** The schema of the whole file, with every default (configuration contract, third step of three). */
export function configurationSchema(places: Places): z.ZodType<Configuration> {
  return mapping({
    state_dir: key(kind.path, places.stateDir),
    listen: section(listenSchema(places.socket)),
    upstream: orAbsent(upstream),
    products: list(product).refine(
      (products) => new Set(products.map((each) => each.key)).size === products.length,
      'the same key is given twice',
    ),
    freshness: section(freshness),
    sync: section(sync),
    limits: section(limits),
    metrics: section(mapping({ open: key(kind.boolean, false) })),
    log: section(mapping({ level: logLevel, format: key(kind.oneOf('json', 'pretty'), places.logFormat) })),
  })
    .refine(
      (given) => given.upstream !== null || given.products.length === 0,
      about(
        ['products', 'upstream'],
        'belong to an agent: set upstream.base_url, or leave them out (an authority keeps its products itself)',
      ),
    )
    .refine(
      ({ upstream: above, listen, products }) =>
        above === null ||
        listen.sockets.every(
          ({ grant }) =>
            grant === null ||
            grant.product === null ||
            products.some(({ key: name }) => name === grant.product),
        ),
      about(['listen', 'products', 'upstream'], 'a socket grants a product that is not in products'),
    )
    .transform(({ state_dir, ...same }) => ({
      role: same.upstream === null ? 'authority' : 'agent',
      stateDir: state_dir,
      ...same,
    }));
}
