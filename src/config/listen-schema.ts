import type { z } from 'zod';
import { credentialHeaders } from '../domain/header-names.ts';
import { isLoopback } from './address.ts';
import type { ListenSettings } from './configuration.ts';
import { about, key, list, mapping, orAbsent, section } from './section.ts';
import * as kind from './value.ts';

const grant = mapping({
  scopes: list(key(kind.oneOf('verify', 'use', 'manage', 'coupons:read', 'coupons:write'))),
  product: key(kind.orNull(kind.text), null),
})
  .refine(({ scopes }) => scopes.length > 0, about(['scopes'], 'must name a scope'))
  .refine(
    ({ scopes, product }) => product === null || !scopes.some((scope) => scope.startsWith('coupons:')),
    about(['product', 'scopes'], 'cannot be given with a coupon scope: coupons belong to the account'),
  );

const socket = mapping({
  path: key(kind.socketPath),
  mode: key(kind.mode, '0600'),
  group: key(kind.orNull(kind.text), null),
  grant: orAbsent(grant),
});

const headerAliases = mapping({
  api_key: list(key(kind.headerName)),
  product_secret: list(key(kind.headerName)),
})
  .refine(
    (names) =>
      isDistinct([
        ...Object.values(credentialHeaders),
        'authorization',
        ...names.api_key,
        ...names.product_secret,
      ]),
    about(['api_key', 'product_secret'], 'names a header that already has a meaning, or one twice'),
  )
  .transform((names) => ({ apiKey: names.api_key, productSecret: names.product_secret }));

/** The schema of `listen` (outside contract, listeners). */
export function listenSchema(defaultSocket: string): z.ZodType<ListenSettings> {
  return mapping({
    tcp: key(kind.orFalse(kind.address), '127.0.0.1:8787'),
    socket: key(kind.orFalse(kind.socketPath), defaultSocket),
    socket_mode: key(kind.mode, '0600'),
    sockets: list(socket),
    header_aliases: section(headerAliases),
    allow_remote: key(kind.boolean, false),
    allowed_hosts: list(key(kind.host)),
  })
    .refine(
      (listen) => listen.tcp === null || listen.allow_remote || isLoopback(listen.tcp.host),
      about(
        ['tcp', 'allow_remote'],
        'is not a loopback address: set listen.allow_remote to true to be reached from other machines',
      ),
    )
    .refine(
      (listen) => listen.tcp !== null || listen.socket !== null || listen.sockets.length > 0,
      about(['tcp', 'socket', 'sockets'], 'is switched off, and so is listen.socket: nobody could call'),
    )
    .refine(
      (listen) => isDistinct([listen.socket ?? '', ...listen.sockets.map(({ path }) => path)]),
      about(['sockets', 'socket'], 'has a path that is given twice'),
    )
    .transform((given) => ({
      tcp: given.tcp,
      socket: given.socket,
      socketMode: given.socket_mode,
      sockets: given.sockets,
      headerAliases: given.header_aliases,
      allowRemote: given.allow_remote,
      allowedHosts: given.allowed_hosts,
    }));
}

function isDistinct(names: readonly string[]): boolean {
  return new Set(names).size === names.length;
}
