import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Principal } from '../../domain/access/principal.ts';
import {
  credentialHeaders,
  idempotencyKeyHeader,
  instanceHeader,
  operationHeader,
  requestIdHeader,
} from '../../domain/header-names.ts';
import { containsLicenseKey } from '../../domain/license.ts';
import type { RouteResponse } from '../response.ts';
import type { Route } from '../route.ts';
import type { App, ServerSettings } from '../app.ts';
import type { RawParameters } from '../../wire/parameters.ts';
import type { KnownCredential } from '../../service/access/credential.ts';

/** Hides license keys from a caller, who sends the masked keys in place of them. */
export interface KeyMask {
  unmaskPath<Path extends Readonly<Record<string, string>>>(path: Path): Path;
  unmaskQuery(query: RawParameters): RawParameters;
  maskReply(reply: FastifyReply, payload: unknown): unknown;
}

/** The state of a request after the checks of the gate. */
type RequestState = {
  head: Head;
  query: RawParameters;
  principal: Principal | null;
  /** SHA-256 of the body; '' unless the route has it computed. */
  bodyDigest: string;
  /** The credential of the principal; null if the route needs no credential, or the credential is of a page. */
  knownCredential: KnownCredential | null;
  /** Hides license keys from the caller; null: the caller gets them whole. */
  mask: KeyMask | null;
  /** The response of the handler if it may be cached: the others are not kept while they are unsent. */
  response: RouteResponse | null;
  startedAt: number;
};

declare module 'fastify' {
  interface FastifyContextConfig {
    route?: Route;
  }
  interface FastifyRequest {
    state: RequestState | null;
  }
}

/** The state of a request that passed the gate. */
export function stateOf({ state }: FastifyRequest): RequestState {
  if (state === null) throw new Error('a route was reached past the gate');
  return state;
}

/** The headers that this server uses, each with all its values: Node's `headers` hide duplicates. */
export type Head = {
  readonly host: readonly string[];
  readonly contentType: readonly string[];
  readonly contentEncoding: readonly string[];
  readonly transferEncoding: readonly string[];
  readonly origin: readonly string[];
  readonly referer: readonly string[];
  readonly apiKey: readonly string[];
  readonly productSecret: readonly string[];
  readonly authorization: readonly string[];
  readonly idempotencyKey: readonly string[];
  readonly prefer: readonly string[];
  readonly forwardedFor: readonly string[];
  /** The instance ids of the agents that sent the request. */
  readonly instance: readonly string[];
  /** What an agent says about the operation that it delivers. */
  readonly operation: readonly string[];
  /** Whether two lines of one header carry different credentials. Equal lines count as one. */
  readonly areCredentialsDifferent: boolean;
  /** How many header lines there were in all. */
  readonly count: number;
};

type HeaderName = Exclude<keyof Head, 'areCredentialsDifferent' | 'count'>;

/** The names of the headers that carry a credential: from the specification, the dialect and the configuration. */
export function credentialNames(
  { dialect }: App,
  { headerAliases }: ServerSettings,
): ServerSettings['headerAliases'] {
  return {
    apiKey: [credentialHeaders.apiKey, ...dialect.apiKeyHeaders, ...headerAliases.apiKey],
    productSecret: [credentialHeaders.productSecret, ...headerAliases.productSecret],
  };
}

/** The values of a header that is not sent: a request keeps its headers while it waits, so it has no empty lists of its own. */
const none: readonly string[] = [];

/** Makes the function that reads the headers of a request, with all names of the credential headers. */
export function headReader({
  apiKey,
  productSecret,
}: ServerSettings['headerAliases']): (message: Pick<IncomingMessage, 'rawHeaders'>) => Head {
  const names = new Map<string, HeaderName>([
    ['host', 'host'],
    ['content-type', 'contentType'],
    ['content-encoding', 'contentEncoding'],
    ['transfer-encoding', 'transferEncoding'],
    ['origin', 'origin'],
    ['referer', 'referer'],
    ['authorization', 'authorization'],
    [idempotencyKeyHeader.toLowerCase(), 'idempotencyKey'],
    ['prefer', 'prefer'],
    ['x-forwarded-for', 'forwardedFor'],
    [instanceHeader.toLowerCase(), 'instance'],
    [operationHeader.toLowerCase(), 'operation'],
  ]);
  const carriers = new Set([...apiKey, ...productSecret, 'authorization']);
  for (const alias of apiKey) names.set(alias, 'apiKey');
  for (const alias of productSecret) names.set(alias, 'productSecret');
  return ({ rawHeaders }) => {
    const head: Record<HeaderName, readonly string[]> = {
      host: none,
      contentType: none,
      contentEncoding: none,
      transferEncoding: none,
      origin: none,
      referer: none,
      apiKey: none,
      productSecret: none,
      authorization: none,
      idempotencyKey: none,
      prefer: none,
      forwardedFor: none,
      instance: none,
      operation: none,
    };
    const credentials = new Map<string, string>();
    let areCredentialsDifferent = false;
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const sentName = (rawHeaders[index] ?? '').toLowerCase();
      const value = rawHeaders[index + 1] ?? '';
      const name = names.get(sentName);
      // A list that grows has room for 17 values.
      if (name !== undefined) head[name] = head[name] === none ? [value] : [...head[name], value];
      if (!carriers.has(sentName)) continue;
      areCredentialsDifferent ||= (credentials.get(sentName) ?? value) !== value;
      credentials.set(sentName, value);
    }
    return { ...head, areCredentialsDifferent, count: rawHeaders.length / 2 };
  };
}

/** The request ids of tracing software: UUIDs, ULIDs, hexadecimal, base64, `Root=1-…`. They go into logs and headers. */
const wellFormed = /^[\w.:@/+=~-]{1,128}$/;

const headerName = requestIdHeader.toLowerCase();

/** The caller's id of a request, or a new id (src/http/README.md, The id of a request). */
export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const sent = headers[headerName];
  return requestIdFrom(typeof sent === 'string' ? sent : undefined);
}

/** The id that the caller sent, or a new id if that id is missing, malformed or contains a license key. */
export function requestIdFrom(sent: string | undefined): string {
  const isValid = sent !== undefined && wellFormed.test(sent) && !containsLicenseKey(sent);
  return isValid ? sent : newRequestId();
}

export function newRequestId(): string {
  return randomUUID();
}

const longestWaitS = 30;

/** Reads `Prefer: wait=N` (RFC 7240) as ms, at most 30 s; 0 if it is missing or malformed. */
export function readWait(prefer: readonly string[]): number {
  for (const preference of prefer.flatMap((value) => value.split(','))) {
    const seconds = /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;.*)?$/i.exec(preference)?.[1];
    if (seconds !== undefined) return Math.min(Number(seconds), longestWaitS) * 1000;
  }
  return 0;
}

const names = new WeakMap<Socket, string>();
let named = 0;

/** A name that no other connection of this process has had. */
export function connectionName(socket: Socket): string {
  const name = names.get(socket) ?? `connection ${(named += 1)}`;
  names.set(socket, name);
  return name;
}
