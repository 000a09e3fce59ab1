import { z } from 'zod';
import {
  apiKeyHeaders,
  credentialHeaders,
  dialectNames,
  foreignStoreNames,
} from '../../domain/header-names.ts';
import { ofStores } from '../foreign-stores.ts';
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
  wait,
} from '../setting-types.ts';

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
      store: optional(z.enum(foreignStoreNames)).meta({
        description:
          'A store that has an API of its own: software that was written for it can call this agent (examples/guides/, by the name of the store). If omitted, the upstream speaks the specification.',
      }),
      base_url: baseUrl.meta({
        description: 'Base URL of the API; `/api/v2/…` is appended, or the paths of `store`.',
        defaultText: [...ofStores((store) => store.baseUrl), 'required without `store`'].join('; '),
      }),
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
      access_token: optional(secret).meta({
        description:
          'The access token of the seller at `store`; at Lemon Squeezy, the API key. At Gumroad it is only needed to enable and disable license keys, to take uses back, and to list license keys (`latchkey preload --from-store`); at Lemon Squeezy and Polar, to find an activation whose answer was lost.',
        reload: 'applies',
      }),
      access_token_file: secretFile('access_token', { reload: 'applies' }),
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
      ({ store, dialect, api_key }) => store === null || (dialect === 'specification' && api_key === null),
      rule(['store'], 'cannot be given with dialect or api_key: it has an API of its own'),
    )
    .refine(
      ({ store, access_token }) => store !== null || access_token === null,
      rule(['access_token', 'store'], 'is only for a store that has an API of its own'),
    )
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
