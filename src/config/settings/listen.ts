import { z } from 'zod';
import {
  dialectNames,
  apiKeyHeaders,
  credentialHeaders,
  idempotencyKeyHeader,
  instanceHeader,
  requestIdHeader,
} from '../../domain/header-names.ts';
import { isPipe, maxSocketLength } from '../../domain/socket-path.ts';
import type { KeyPath } from '../errors.ts';
import { isDistinct } from '../file/tree.ts';
import { publicSettings, type PublicSettingsOfFeatures } from '../public-settings.ts';
import { rule, section } from '../section.ts';
import {
  address,
  addressRange,
  count,
  duration,
  headerName,
  host,
  mode,
  oneOrMoreOrFalse,
  optional,
  orFalse,
  origin,
  path,
  socketPath,
  text,
} from '../setting-types.ts';
import { formatAddress, isLoopback } from '../value/address.ts';

const trustsEverybody =
  'must not contain every address: each caller could then choose its own address in X-Forwarded-For';

function hasNoOpenRange(ranges: readonly { prefix: number }[]): boolean {
  return ranges.every(({ prefix }) => prefix > 0);
}

const grant = section(
  z
    .strictObject({
      scopes: z
        .array(z.enum(['verify', 'use', 'manage', 'coupons:read', 'coupons:write']))
        .prefault([])
        .meta({ description: 'What a caller may do.' }),
      product: optional(text).meta({
        description:
          'The key of the only product whose license keys can be used. If omitted, the license keys of all products can be used.',
      }),
    })
    .refine(({ scopes }) => scopes.length > 0, rule(['scopes'], 'must name at least one scope'))
    .refine(
      ({ product, scopes }) => product === null || !scopes.some((scope) => scope.startsWith('coupons:')),
      rule(['product', 'scopes'], 'cannot be given with a coupon scope: coupons belong to the account'),
    ),
);

const socket = section(
  z.strictObject({
    path: socketPath.meta({ description: 'Path of the socket.' }),
    mode: mode.prefault('0600').meta({ description: 'Its permission bits.' }),
    group: optional(text).meta({ description: 'The group that owns it, by name or number.' }),
    grant: optional(grant).meta({
      description:
        'What every caller of this socket may do without a credential. If omitted, callers need a credential.',
    }),
  }),
);

/** Headers with a meaning of their own: as the name of a credential, their values would be logged or not be read. */
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

const headerAliases = section(
  z
    .strictObject({
      api_key: z
        .array(headerName)
        .prefault([])
        .meta({ description: 'Additional names for the header that carries the API key.' }),
      product_secret: z
        .array(headerName)
        .prefault([])
        .meta({ description: 'Additional names for the header that carries the secret of a product.' }),
    })
    .refine(
      ({ api_key, product_secret }) =>
        isDistinct([...Object.values(credentialHeaders), ...otherHeaders, ...api_key, ...product_secret]),
      rule(
        ['api_key', 'product_secret'],
        'names a header that already has a meaning, or the same header twice',
      ),
    ),
);

const tls = section(
  z.strictObject({
    cert_file: path.meta({
      description:
        'The certificate (PEM), followed by the intermediate certificates up to the authority that callers trust.',
      reload: 'applies',
    }),
    key_file: path.meta({
      description: 'Its private key (PEM), without a passphrase.',
      reload: 'applies',
    }),
  }),
);

/** Where a daemon can be reached: commands read this part even if other settings are wrong. */
export const endpoints = {
  tcp: oneOrMoreOrFalse(address).prefault('127.0.0.1:8787').meta({
    description:
      'Address and port of the TCP listener; port 0 picks a free one. A list such as `["127.0.0.1:8787", "[::1]:8787"]` has a listener for each address. `listen.json` names the first one.',
  }),
  socket: orFalse(socketPath).meta({
    description:
      'Path of the Unix socket (on macOS at most 103 bytes), or name of the named pipe on Windows (`\\\\.\\pipe\\NAME`, at most 256 characters).',
    defaultText:
      '`latchkey.sock` in `$RUNTIME_DIRECTORY`, else in `$XDG_RUNTIME_DIR/latchkey`, else in `state_dir`; on macOS in `state_dir`; on Windows `\\\\.\\pipe\\latchkey-` and a hash of `state_dir`',
  }),
};

// The compiler sees their types in `PublicSettingsOfFeatures`.
const settingsOfFeatures = Object.fromEntries(
  publicSettings.map(({ name, type }) => [name, type]),
) as unknown as PublicSettingsOfFeatures;

const publicListener = section(
  z.strictObject({
    address: address.meta({
      description:
        'Address and port of the listener, which speaks plain HTTP; port 0 picks a free one. The proxy of your web server adds TLS.',
    }),
    proxies: z.array(addressRange).refine(hasNoOpenRange, trustsEverybody).prefault([]).meta({
      description:
        'Addresses of the proxies in front of the listener. The client of a request is then the last address of `X-Forwarded-For` that is not a proxy.',
    }),
    connections: count.prefault(16_384).meta({
      description:
        'The maximum number of open connections; each device that waits for a change has one. Use this instead of `limits.connections`.',
      unit: 'connections',
    }),
    ...settingsOfFeatures,
  }),
);

const longestDrainDelayMs = 600_000;

export const listen = section(
  z
    .strictObject({
      tcp: endpoints.tcp,
      tls: optional(tls).meta({
        description:
          'TLS on `listen.tcp`, which then accepts nothing else. If omitted, it speaks plain HTTP. SIGHUP reads both files again, even if their names are the same.',
      }),
      socket: endpoints.socket,
      socket_mode: mode.prefault('0600').meta({
        description:
          'Permission bits of `listen.socket`. On Windows only `0600`: the user of the daemon and administrators. There, open a pipe of `listen.sockets` to other users, with the mode `0666`.',
      }),
      sockets: z.array(socket).prefault([]).meta({ description: 'Additional Unix sockets.' }),
      dialect: z.enum(dialectNames).prefault('specification').meta({
        description:
          'The dialect of responses of `/api`: that of the specification and RFC 9457, or that of a store for which existing software was written (src/http/README.md, Dialects).',
      }),
      unknown: z.enum(['problem', 'reset']).meta({
        description:
          'What a license route does if nothing is known about the key: `problem` sends a problem (503, 408, 429), `reset` closes the connection without a response. Much existing software treats a response that it cannot read as "invalid", but tolerates a failed connection.',
        defaultText: '`reset` if `listen.dialect` is `payhip` or `upstream.store` is given, else `problem`',
      }),
      header_aliases: headerAliases.prefault({}).meta({
        description:
          'Additional names for the headers that carry credentials, for software that sends different ones.',
      }),
      public: optional(publicListener).meta({
        description:
          'A listener for the devices of your customers and the events of your store. It serves `/lease/v1`, `/hooks/v1` and `/livez`, with `buyers` also `/license`, and nothing else. It accepts the host name of the issuer and `listen.allowed_hosts`. If omitted, there is none.',
      }),
      drain_delay: duration.prefault('0s').meta({
        description:
          'How long requests are still served after SIGTERM, while `/readyz` already returns 503 and each response closes its connection. Set it to the time that a proxy needs to notice; at most 10m.',
      }),
      allow_remote: z.boolean().prefault(false).meta({
        description: 'Must be true before `listen.tcp` may be an address that other machines can reach.',
      }),
      allowed_hosts: z.array(host).prefault([]).meta({
        description: 'Names and addresses that a request may have in `Host`, besides those of this machine.',
      }),
      allowed_origins: z.array(origin).prefault([]).meta({
        description:
          'Origins of the web pages that may use `/api` and `/agent`; browser extensions, Electron windows and webviews send an origin, too. All others are refused.',
      }),
    })
    .refine(
      ({ drain_delay }) => drain_delay <= longestDrainDelayMs,
      rule(['drain_delay'], 'must be at most 10m'),
    )
    .refine(
      ({ dialect, header_aliases }) => !header_aliases.productSecret.includes(apiKeyHeaders[dialect]),
      rule(
        ['header_aliases', 'dialect'],
        'takes the product secret from the header that carries the API key in this dialect',
      ),
    )
    .refine(
      ({ tcp, allow_remote }) => allow_remote || tcp.every(({ host: each }) => isLoopback(each)),
      rule(
        ['tcp', 'allow_remote'],
        'is not a loopback address: set listen.allow_remote to true to be reached from other machines',
      ),
    )
    .refine(
      (value) => value.tcp.length > 0 || value.socket !== null || value.sockets.length > 0,
      rule(
        ['tcp', 'socket', 'sockets'],
        'has no listener: turn on listen.tcp, listen.socket or listen.sockets',
      ),
    )
    .refine(
      (value) => value.tls === null || value.tcp.length > 0,
      rule(['tls', 'tcp'], 'needs listen.tcp, which is switched off'),
    )
    .refine(({ tcp }) => isDistinct(tcp.map(formatAddress)), rule(['tcp'], 'has the same address twice'))
    .refine(
      (value) => isDistinct([value.socket ?? '', ...value.sockets.map((each) => each.path)]),
      rule(['sockets', 'socket'], 'has the same path twice'),
    ),
).meta({
  description:
    'Where callers reach this process. Every listener except `listen.public` serves the same routes.',
  reload: 'restart',
});

const pipeModes: ReadonlySet<number> = new Set([0o600, 0o666]);

/** The settings of sockets that this platform does not have. `key`: the path in the section `listen`. */
export function checkSockets(
  { socket: first, socketMode, sockets }: z.output<typeof listen>,
  platform: NodeJS.Platform,
): readonly { readonly key: KeyPath; readonly text: string }[] {
  const isWindows = platform === 'win32';
  const found = [
    { key: ['socket'], text: first === null ? null : checkPath(first, platform) },
    { key: ['socket_mode'], text: first !== null && isWindows && socketMode !== 0o600 ? noMode : null },
    ...sockets.flatMap((each, index) => [
      { key: ['sockets', index, 'path'], text: checkPath(each.path, platform) },
      { key: ['sockets', index, 'mode'], text: isWindows ? checkPipeMode(each.mode) : null },
      { key: ['sockets', index, 'group'], text: isWindows && each.group !== null ? noGroup : null },
    ]),
  ];
  return found.flatMap(({ key, text: wrong }) => (wrong === null ? [] : [{ key, text: wrong }]));
}

/** With 0666, any user could serve this pipe too, and commands send the admin token to it. */
const noMode = 'must be "0600" on Windows: let other users connect by listen.sockets with mode "0666"';

const noGroup = 'cannot be set on Windows: remove it, and let every user connect with mode "0666"';

function checkPath(name: string, platform: NodeJS.Platform): string | null {
  const limit = maxSocketLength(platform);
  if (platform !== 'win32')
    return Buffer.byteLength(name) <= limit ? null : `must be a path of at most ${limit} bytes`;
  return isPipe(name) && name.length <= limit
    ? null
    : String.raw`must be a named pipe, such as \\.\pipe\latchkey-shop, of at most ${limit} characters`;
}

function checkPipeMode(bits: number): string | null {
  return pipeModes.has(bits)
    ? null
    : 'must be "0600" (the user of the daemon and administrators) or "0666" (every user) on Windows';
}
