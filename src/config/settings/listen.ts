import { dialectNames } from '../../domain/dialect.ts';
import {
  apiKeyHeaders,
  credentialHeaders,
  idempotencyKeyHeader,
  instanceHeader,
  requestIdHeader,
} from '../../domain/header-names.ts';
import { isLoopback } from '../value/address.ts';
import type { Rule, SectionOf, Written } from '../description.ts';
import { isDistinct } from '../file/tree.ts';

const grantKeys = {
  scopes: {
    kind: 'list',
    purpose: 'What a caller may do.',
    items: {
      kind: 'word',
      words: ['verify', 'use', 'manage', 'coupons:read', 'coupons:write'],
      purpose: 'One scope.',
    },
  },
  product: {
    kind: 'text',
    default: null,
    purpose: 'The key of the one product whose license keys can be reached; without it, all of them can.',
  },
} as const;

const grant: SectionOf<typeof grantKeys> & { readonly optional: true } = {
  kind: 'section',
  purpose: 'What every caller of this socket may do without a credential. Left out, one is needed.',
  optional: true,
  keys: grantKeys,
  rules: [
    { about: ['scopes'], text: 'must name a scope', holds: ({ scopes }) => scopes.length > 0 },
    {
      about: ['product', 'scopes'],
      text: 'cannot be given with a coupon scope: coupons belong to the account',
      holds: ({ product, scopes }) =>
        product === null || !scopes.some((scope) => scope.startsWith('coupons:')),
    },
  ],
};

const socketKeys = {
  path: { kind: 'socketPath', purpose: 'Where the socket is.' },
  mode: { kind: 'mode', default: '0600', purpose: 'Its permission bits.' },
  group: { kind: 'text', default: null, purpose: 'The group that owns it, by name or number.' },
  grant: grant as typeof grant,
} as const;

const headerAliasKeys = {
  api_key: {
    kind: 'list',
    purpose: 'Further names of the header that carries the API key.',
    items: { kind: 'headerName', purpose: 'One name.' },
  },
  product_secret: {
    kind: 'list',
    purpose: 'Further names of the header that carries the secret of a product.',
    items: { kind: 'headerName', purpose: 'One name.' },
  },
} as const;

/** What else is read of a request's head: as a name of a credential, it would be told in answers and logs, or not read. */
const otherHeaders = [
  'accept',
  'authorization',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'origin',
  'prefer',
  'referer',
  'traceparent',
  'tracestate',
  'transfer-encoding',
  'upgrade',
  ...[idempotencyKeyHeader, instanceHeader, requestIdHeader].map((name) => name.toLowerCase()),
];

const headerAliases: SectionOf<typeof headerAliasKeys> = {
  kind: 'section',
  purpose: 'Further names of the headers that carry credentials, for software that sends others.',
  keys: headerAliasKeys,
  rules: [
    {
      about: ['api_key', 'product_secret'],
      text: 'names a header that already has a meaning, or one twice',
      holds: (names) =>
        isDistinct([
          ...Object.values(credentialHeaders),
          ...otherHeaders,
          ...names.api_key,
          ...names.product_secret,
        ]),
    },
  ],
};

const tlsKeys = {
  cert_file: {
    kind: 'path',
    reload: 'applies',
    purpose: 'The certificate (PEM), and behind it those that lead to the authority that callers trust.',
  },
  key_file: {
    kind: 'path',
    reload: 'applies',
    purpose: 'Its private key (PEM), without a passphrase.',
  },
} as const;

const tls: SectionOf<typeof tlsKeys> & { readonly optional: true } = {
  kind: 'section',
  purpose:
    'TLS on `listen.tcp`, which then speaks nothing else. Left out, it speaks plain HTTP. SIGHUP reads both files again, also under the same names.',
  optional: true,
  keys: tlsKeys,
  rules: [],
};

export const listenKeys = {
  tcp: {
    kind: 'address',
    orFalse: true,
    default: '127.0.0.1:8787',
    purpose: 'Address and port of the TCP listener; port 0 is any free one.',
  },
  tls: tls as typeof tls,
  socket: {
    kind: 'socketPath',
    orFalse: true,
    default: {
      place: 'socket',
      text: '`latchkey.sock` in `$RUNTIME_DIRECTORY`, else in `$XDG_RUNTIME_DIR/latchkey`, else in `state_dir`; on Windows `\\\\.\\pipe\\latchkey`',
    },
    purpose: 'Path of the Unix socket, or on Windows of the named pipe.',
  },
  socket_mode: { kind: 'mode', default: '0600', purpose: 'Permission bits of `listen.socket`.' },
  sockets: {
    kind: 'list',
    purpose: 'Further Unix sockets.',
    items: { kind: 'section', purpose: 'One socket.', keys: socketKeys as typeof socketKeys },
  },
  dialect: {
    kind: 'word',
    words: dialectNames as typeof dialectNames,
    default: 'specification',
    purpose:
      'How callers of `/api` are answered: as the specification and RFC 9457 say, or as a store does for which existing software was written (src/http/README.md, Dialects).',
  },
  unknown: {
    kind: 'word',
    words: ['problem', 'reset'],
    default: 'problem',
    purpose:
      'What is answered when nothing can be said of a license key, as when the upstream is away and the key was never seen: a problem (503), or nothing at all, the connection being closed. Existing software takes any answer that it cannot read for "invalid", and forgives a connection that fails.',
  },
  header_aliases: headerAliases as typeof headerAliases,
  drain_delay: {
    kind: 'duration',
    default: '0s',
    purpose:
      'How long requests go on being answered after SIGTERM, while `/readyz` already says 503 and each answer closes its connection: as long as a proxy takes to notice. At most 10m.',
  },
  allow_remote: {
    kind: 'boolean',
    default: false,
    purpose: 'Must be true before `listen.tcp` may be an address that other machines can reach.',
  },
  allowed_hosts: {
    kind: 'list',
    purpose: 'Names and addresses that a request may have in `Host`, beside those of this machine.',
    items: { kind: 'host', purpose: 'One name or address.' },
  },
  allowed_origins: {
    kind: 'list',
    purpose:
      'The web pages, by their origins, that may use `/api` and `/agent`: browser extensions, Electron windows and webviews send one. All others are refused.',
    items: { kind: 'origin', purpose: 'One origin.' },
  },
} as const;

const longestDrainDelayMs = 600_000;

export const listenRules: readonly Rule<Written<typeof listenKeys>>[] = [
  {
    about: ['drain_delay'],
    text: 'must be at most 10m',
    holds: ({ drain_delay }) => drain_delay <= longestDrainDelayMs,
  },
  {
    about: ['header_aliases', 'dialect'],
    text: 'gives the secret of a product the header that carries the API key in this dialect',
    holds: ({ dialect, header_aliases }) => !header_aliases.productSecret.includes(apiKeyHeaders[dialect]),
  },
  {
    about: ['tcp', 'allow_remote'],
    text: 'is not a loopback address: set listen.allow_remote to true to be reached from other machines',
    holds: ({ tcp, allow_remote }) => tcp === null || allow_remote || isLoopback(tcp.host),
  },
  {
    about: ['tcp', 'socket', 'sockets'],
    text: 'is switched off, and so is listen.socket: nobody could call',
    holds: ({ tcp, socket, sockets }) => tcp !== null || socket !== null || sockets.length > 0,
  },
  {
    about: ['tls', 'tcp'],
    text: 'needs listen.tcp, which is switched off',
    holds: ({ tls: given, tcp }) => given === null || tcp !== null,
  },
  {
    about: ['sockets', 'socket'],
    text: 'has a path that is given twice',
    holds: ({ socket, sockets }) => isDistinct([socket ?? '', ...sockets.map(({ path }) => path)]),
  },
];
