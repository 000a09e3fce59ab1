import { z } from 'zod';
import { leaseTermLimits } from '../../domain/catalogue.ts';
import { dialectNames, apiKeyHeaders, credentialHeaders } from '../../domain/header-names.ts';
import { isDistinct } from '../file/tree.ts';
import { rule, section } from '../section.ts';
import {
  baseUrl,
  destination,
  headerName,
  headerValue,
  optional,
  path,
  proxyUrl,
  secret,
  secretFile,
  text,
  wait,
  productKey,
} from '../setting-types.ts';
import { mask, type Secret } from '../value/secret.ts';
import { formatDuration } from '../value/unit.ts';
import { leaseTerms } from './lease-terms.ts';

const headers = section(
  z
    .strictObject({
      api_key: optional(headerName).meta({
        description:
          'The header that carries `api_key`. If omitted, that of the dialect: the specification’s, or `payhip-api-key`.',
      }),
      product_secret: headerName
        .prefault(credentialHeaders.productSecret)
        .meta({ description: 'The header that carries the secret of a product.' }),
    })
    .refine(
      ({ api_key, product_secret }) =>
        api_key === null
          ? !Object.values(apiKeyHeaders).includes(product_secret)
          : api_key !== product_secret,
      rule(['product_secret', 'api_key'], 'must not be the same header as api_key'),
    ),
);

const agent = section(
  z
    .strictObject({
      base_url: baseUrl.meta({ description: 'Base URL of the API; `/api/v2/…` is appended.' }),
      dialect: z.enum(dialectNames).prefault('specification').meta({
        description:
          'How the upstream responds where the specification leaves it open, for example if a key is unknown.',
      }),
      api_key: optional(secret).meta({
        description:
          'The API key of your account at the upstream. Without an API key, coupons are not available.',
        reload: 'applies',
      }),
      api_key_file: secretFile('api_key', { reload: 'applies' }),
      headers: headers.prefault({}).meta({
        description: 'Names of the headers that carry credentials to the upstream.',
      }),
      user_agent: optional(headerValue).meta({
        description:
          'The `User-Agent` to send, for firewalls that do not accept the default, `latchkey/` and the version.',
      }),
      timeout: wait
        .prefault('10s')
        .meta({ description: 'How long a request may take until the response is complete.' }),
      probe: wait.prefault('30s').meta({
        description:
          'After this long without a request, a read is sent to check whether the upstream is still available.',
        reload: 'applies',
      }),
      ca_file: optional(path).meta({
        description:
          'Certificates (PEM) to trust in addition to those of the system and those that Node contains.',
      }),
      connect_to: optional(destination).meta({
        description:
          'Connect to this address instead of resolving the host of `base_url`. Needed if that host resolves to this agent. `Host`, the TLS server name and the certificate remain those of `base_url`; no proxy is used.',
      }),
      proxy: optional(proxyUrl).meta({
        description:
          'The HTTP proxy to the upstream; it may include a user and a password. If omitted, `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` decide. `NO_PROXY` is read as curl reads it: names with their subdomains, addresses, ranges such as `10.0.0.0/8`, and `*`; a port may follow. The log names the proxy at the start, and so does `status`.',
      }),
    })
    .refine(
      ({ connect_to, proxy }) => connect_to === null || proxy === null,
      rule(['connect_to', 'proxy'], 'cannot be given with a proxy, since the proxy decides where to connect'),
    ),
);

export const upstream = optional(agent).meta({
  description:
    'The server from which an agent reads licenses and to which it sends changes. Without this section, the process is an authority with its own store, or a holder if `leases.issuer` is given.',
  reload: 'restart',
});

const { maxSeats, maxHoldMs, minTermMs, maxTermMs, minRefreshMs } = leaseTermLimits;

const product = section(
  z
    .strictObject({
      key: productKey.meta({ description: 'The key of the product.' }),
      name: optional(text).meta({
        description:
          'The display name: used as `product_name` in the dialect `payhip` until the upstream provides one.',
      }),
      secret: optional(secret).meta({
        description:
          'The secret of the product at the upstream. An agent needs the secret or its file; a holder must not have one.',
      }),
      secret_file: secretFile('secret'),
      ...leaseTerms,
    })
    .refine(
      ({ seats }) => seats === null || seats <= maxSeats,
      rule(['seats'], `must be at most ${maxSeats}`),
    )
    .refine(({ hold }) => hold <= maxHoldMs, rule(['hold'], `must be at most ${formatDuration(maxHoldMs)}`))
    .refine(
      ({ term }) => term >= minTermMs && term <= maxTermMs,
      rule(['term'], `must be ${formatDuration(minTermMs)} to ${formatDuration(maxTermMs)}`),
    )
    .refine(
      ({ refresh, term }) => refresh >= minRefreshMs && refresh < term,
      rule(['refresh', 'term'], `must be at least ${formatDuration(minRefreshMs)} and less than term`),
    ),
);

export const products = z
  .array(product)
  .refine((value) => isDistinct(value.map(({ key }) => key)), 'the same key is given twice')
  // A request that carries a secret means one product, and a renamed product is recognized by its secret.
  .refine(
    (value) => isDistinct(value.flatMap((each) => (each.secret === null ? [] : [comparable(each.secret)]))),
    'the same secret is given twice',
  )
  .prefault([])
  .meta({
    description:
      'The products of the upstream or the issuer whose license keys an agent or a holder serves. An authority keeps its products in its own store.',
  });

/** The mask stands for a secret whose file could not be read: it equals no other secret. */
function comparable(value: Secret): unknown {
  return value.reveal() === mask ? value : value.reveal();
}
