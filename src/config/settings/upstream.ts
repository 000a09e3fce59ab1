import { dialectNames } from '../../domain/dialect.ts';
import { apiKeyHeaders, credentialHeaders } from '../../domain/header-names.ts';
import type { SectionOf } from '../description.ts';

const headerKeys = {
  api_key: {
    kind: 'headerName',
    default: null,
    purpose:
      'The header that carries `api_key`. If omitted, that of the dialect: the specification’s, or `payhip-api-key`.',
  },
  product_secret: {
    kind: 'headerName',
    default: credentialHeaders.productSecret as string,
    purpose: 'The header that carries the secret of a product.',
  },
} as const;

const headers: SectionOf<typeof headerKeys> = {
  kind: 'section',
  purpose: 'Names of the headers that carry credentials to the upstream.',
  keys: headerKeys,
  rules: [
    {
      about: ['product_secret', 'api_key'],
      text: 'must not be the same header as api_key',
      holds: ({ api_key, product_secret }) =>
        api_key === null
          ? !Object.values(apiKeyHeaders).includes(product_secret)
          : api_key !== product_secret,
    },
  ],
};

const upstreamKeys = {
  base_url: { kind: 'baseUrl', purpose: 'Base URL of its API; `/api/v2/…` is appended.' },
  dialect: {
    kind: 'word',
    words: dialectNames as typeof dialectNames,
    default: 'specification',
    purpose: 'How it answers where the specification leaves it open, for example when a key is unknown.',
  },
  api_key: {
    kind: 'secret',
    default: null,
    reload: 'applies',
    purpose: 'The API key of your account there. Without one, coupons are not served.',
  },
  headers: headers as typeof headers,
  user_agent: {
    kind: 'headerValue',
    default: null,
    purpose:
      'The `User-Agent` to send, for firewalls that do not accept the default, `latchkey/` and the version.',
  },
  timeout: {
    kind: 'wait',
    default: '10s',
    purpose: 'How long a request may take until its answer is complete.',
  },
  probe: {
    kind: 'wait',
    default: '30s',
    reload: 'applies',
    purpose:
      'After this long without any request, a read is sent to find out whether the upstream is still there.',
  },
  ca_file: {
    kind: 'path',
    default: null,
    purpose: 'Certificates (PEM) to trust in addition to those of the system and those that Node contains.',
  },
  connect_to: {
    kind: 'destination',
    default: null,
    purpose:
      'Where to connect instead of the address that the name in `base_url` resolves to, for a machine on which that name resolves to this very process. `Host`, the TLS server name and the certificate remain those of `base_url`; no proxy is used.',
  },
  proxy: {
    kind: 'proxyUrl',
    default: null,
    purpose:
      'The HTTP proxy to the upstream; it may include a user and a password. If omitted, `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` decide. `NO_PROXY` is read as curl reads it: names with their subdomains, addresses, ranges such as `10.0.0.0/8`, and `*`; a port may follow. The log names the proxy at the start, and so does `status`.',
  },
} as const;

export const upstream: SectionOf<typeof upstreamKeys> & { readonly optional: true } = {
  kind: 'section',
  purpose:
    'The server that an agent asks and reports to. Without this section, the process is an authority, whose own store decides.',
  optional: true,
  reload: 'restart',
  keys: upstreamKeys,
  rules: [
    {
      about: ['connect_to', 'proxy'],
      text: 'cannot be given with a proxy, since the proxy decides where to connect',
      holds: ({ connect_to, proxy }) => connect_to === null || proxy === null,
    },
  ],
};

export const products = {
  kind: 'list',
  purpose:
    'The products of the upstream whose license keys an agent serves. An authority keeps its products in its own store.',
  // Whoever sends a secret means one product, and a product that is renamed is known by it.
  distinct: ['key', 'secret'],
  items: {
    kind: 'section',
    purpose: 'One product.',
    keys: {
      key: { kind: 'text', purpose: 'The key of the product.' },
      name: {
        kind: 'text',
        default: null,
        purpose:
          'Its display name: used as `product_name` in the dialect `payhip` until the upstream provides one.',
      },
      secret: { kind: 'secret', purpose: 'Its secret at the upstream.' },
    },
  },
} as const;
