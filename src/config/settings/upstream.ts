import { credentialHeaders } from '../../domain/header-names.ts';
import type { SectionOf } from '../description.ts';

const headerKeys = {
  api_key: {
    kind: 'headerName',
    default: credentialHeaders.apiKey as string,
    purpose: 'The header that carries `api_key`.',
  },
  product_secret: {
    kind: 'headerName',
    default: credentialHeaders.productSecret as string,
    purpose: 'The header that carries the secret of a product.',
  },
} as const;

const headers: SectionOf<typeof headerKeys> = {
  kind: 'section',
  purpose: 'Names of the headers by which the upstream knows us.',
  keys: headerKeys,
  rules: [
    {
      about: ['product_secret', 'api_key'],
      text: 'must not be the same header as api_key',
      holds: ({ api_key, product_secret }) => api_key !== product_secret,
    },
  ],
};

export const upstream = {
  kind: 'section',
  purpose:
    'The server that an agent asks and reports to. Without this section the process is an authority, whose own store is the truth.',
  optional: true,
  reload: 'restart',
  keys: {
    base_url: { kind: 'baseUrl', purpose: 'Its address; `/api/v2/…` is appended.' },
    api_key: {
      kind: 'secret',
      default: null,
      reload: 'applies',
      purpose: 'The API key of our account there. Without one, coupons are not served.',
    },
    headers: headers as typeof headers,
    timeout: {
      kind: 'wait',
      default: '10s',
      purpose: 'How long one request may take until its answer is whole.',
    },
    probe: {
      kind: 'wait',
      default: '30s',
      reload: 'applies',
      purpose:
        'After this long without any request a read is sent, to learn whether the upstream is still there.',
    },
    ca_file: {
      kind: 'path',
      default: null,
      purpose: 'Certificates (PEM) to trust beside those of the system.',
    },
    proxy: {
      kind: 'proxyUrl',
      default: null,
      purpose:
        'The HTTP proxy on the way up; it may carry a user and a password. Without it `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` decide.',
    },
  },
} as const;

export const products = {
  kind: 'list',
  purpose:
    'The products of the upstream whose license keys an agent answers for. An authority keeps its products in its store.',
  distinct: 'key',
  items: {
    kind: 'section',
    purpose: 'One product.',
    keys: {
      key: { kind: 'text', purpose: 'The key of the product.' },
      secret: { kind: 'secret', purpose: 'Its secret at the upstream.' },
    },
  },
} as const;
