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
    purpose:
      'The key of the one product whose license keys can be reached; without it, those of all products can.',
  },
} as const;

const grant: SectionOf<typeof grantKeys> & { readonly optional: true } = {
  kind: 'section',
  purpose:
    'What every caller of this socket may do without a credential. If omitted, a credential is needed.',
  optional: true,
  keys: grantKeys,
  rules: [
    { about: ['scopes'], text: 'must name at least one scope', holds: ({ scopes }) => scopes.length > 0 },
    {
      about: ['product', 'scopes'],
      text: 'cannot be given with a coupon scope: coupons belong to the account',
      holds: ({ product, scopes }) =>
        product === null || !scopes.some((scope) => scope.startsWith('coupons:')),
    },
  ],
};

const socketKeys = {
  path: { kind: 'socketPath', purpose: 'Path of the socket.' },
  mode: { kind: 'mode', default: '0600', purpose: 'Its permission bits.' },
  group: { kind: 'text', default: null, purpose: 'The group that owns it, by name or number.' },
  grant: grant as typeof grant,
} as const;

const headerAliasKeys = {
  api_key: {
    kind: 'list',
    purpose: 'Additional names for the header that carries the API key.',
    items: { kind: 'headerName', purpose: 'One name.' },
  },
  product_secret: {
    kind: 'list',
    purpose: 'Additional names for the header that carries the secret of a product.',
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
  purpose: 'Additional names for the headers that carry credentials, for software that sends different ones.',
  keys: headerAliasKeys,
  rules: [
    {
      about: ['api_key', 'product_secret'],
      text: 'names a header that already has a meaning, or the same header twice',
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
    purpose:
      'The certificate (PEM), followed by the intermediate certificates up to the authority that callers trust.',
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
    'TLS on `listen.tcp`, which then accepts nothing else. If omitted, it speaks plain HTTP. SIGHUP reads both files again, even if their names are the same.',
  optional: true,
  keys: tlsKeys,
  rules: [],
};

export const listenKeys = {
  tcp: {
    kind: 'address',
    orFalse: true,
    default: '127.0.0.1:8787',
    purpose: 'Address and port of the TCP listener; port 0 picks a free one.',
  },
  tls: tls as typeof tls,
  socket: {
    kind: 'socketPath',
    orFalse: true,
    default: {
      place: 'socket',
      text: '`latchkey.sock` in `$RUNTIME_DIRECTORY`, else in `$XDG_RUNTIME_DIR/latchkey`, else in `state_dir`; on Windows `\\\\.\\pipe\\latchkey`',
    },
    purpose: 'Path of the Unix socket, or of the named pipe on Windows.',
  },
  socket_mode: { kind: 'mode', default: '0600', purpose: 'Permission bits of `listen.socket`.' },
  sockets: {
    kind: 'list',
    purpose: 'Additional Unix sockets.',
    items: { kind: 'section', purpose: 'One socket.', keys: socketKeys as typeof socketKeys },
  },
  dialect: {
    kind: 'word',
    words: dialectNames as typeof dialectNames,
    default: 'specification',
    purpose:
      'How callers of `/api` are answered: as the specification and RFC 9457 say, or like a store that existing software was written for (src/http/README.md, Dialects).',
  },
  unknown: {
    kind: 'word',
    words: ['problem', 'reset'],
    default: { place: 'unknown', text: '`reset` if `listen.dialect` is `payhip`, else `problem`' },
    purpose:
      'What to answer when nothing can be said about a license key, for example because the upstream is away and the key was never seen, or because a limit refuses the request: `problem` sends a problem (503, 429), `reset` closes the connection without an answer. Much existing software treats any answer that it cannot read as "invalid", but tolerates a connection that fails.',
  },
  header_aliases: headerAliases as typeof headerAliases,
  drain_delay: {
    kind: 'duration',
    default: '0s',
    purpose:
      'How long requests are still answered after SIGTERM, while `/readyz` already returns 503 and each answer closes its connection. Set it to the time that a proxy takes to notice; at most 10m.',
  },
  allow_remote: {
    kind: 'boolean',
    default: false,
    purpose: 'Must be true before `listen.tcp` may be an address that other machines can reach.',
  },
  allowed_hosts: {
    kind: 'list',
    purpose: 'Names and addresses that a request may have in `Host`, besides those of this machine.',
    items: { kind: 'host', purpose: 'One name or address.' },
  },
  allowed_origins: {
    kind: 'list',
    purpose:
      'Origins of the web pages that may use `/api` and `/agent`; browser extensions, Electron windows and webviews send an origin, too. All others are refused.',
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
    text: 'takes the product secret from the header that carries the API key in this dialect',
    holds: ({ dialect, header_aliases }) => !header_aliases.productSecret.includes(apiKeyHeaders[dialect]),
  },
  {
    about: ['tcp', 'allow_remote'],
    text: 'is not a loopback address: set listen.allow_remote to true to be reached from other machines',
    holds: ({ tcp, allow_remote }) => tcp === null || allow_remote || isLoopback(tcp.host),
  },
  {
    about: ['tcp', 'socket', 'sockets'],
    text: 'is switched off, and so is listen.socket: nobody could connect',
    holds: ({ tcp, socket, sockets }) => tcp !== null || socket !== null || sockets.length > 0,
  },
  {
    about: ['tls', 'tcp'],
    text: 'needs listen.tcp, which is switched off',
    holds: ({ tls: given, tcp }) => given === null || tcp !== null,
  },
  {
    about: ['sockets', 'socket'],
    text: 'has the same path twice',
    holds: ({ socket, sockets }) => isDistinct([socket ?? '', ...sockets.map(({ path }) => path)]),
  },
];
