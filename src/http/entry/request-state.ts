import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { Principal } from '../../domain/access/principal.ts';
import {
  credentialHeaders,
  idempotencyKeyHeader,
  instanceHeader,
  requestIdHeader,
} from '../../domain/header-names.ts';
import { containsLicenseKey } from '../../domain/license-key.ts';
import type { RouteResponse } from '../response.ts';
import type { Route } from '../route.ts';
import type { App, ServerSettings } from '../app.ts';
import type { RawParameters } from '../../wire/parameters.ts';
import type { ResolvedCredential } from '../../service/access/credential.ts';

/** What is known of a request once it has passed the gate. */
export type RequestState = {
  head: Head;
  query: RawParameters;
  principal: Principal | null;
  /** What the principal was found by; null where anyone may call. */
  resolvedCredential: ResolvedCredential | null;
  /** The response of the handler; null: there is none yet, or the handler refused. */
  response: RouteResponse | null;
  startedAt: number;
};

declare module 'fastify' {
  interface FastifyContextConfig {
    csvMember?: string | undefined;
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

/** The headers that matter here, each with all its values: Node's own view hides duplicates. */
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
  /** Which agents ask, where agents do. */
  readonly instance: readonly string[];
  /** Whether two lines of one header carry different credentials. Equal lines count as one. */
  readonly areCredentialsDifferent: boolean;
  /** How many header lines there were in all. */
  readonly count: number;
};

type HeaderName = Exclude<keyof Head, 'areCredentialsDifferent' | 'count'>;

/** The names of the headers that carry a credential: the specification's, the dialect's and those of the configuration. */
export function credentialNames(
  { dialect }: App,
  { headerAliases }: ServerSettings,
): ServerSettings['headerAliases'] {
  return {
    apiKey: [credentialHeaders.apiKey, ...dialect.apiKeyHeaders, ...headerAliases.apiKey],
    productSecret: [credentialHeaders.productSecret, ...headerAliases.productSecret],
  };
}

/** Makes the reader of request heads for a listener, which knows the credentials under all their names. */
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
    [instanceHeader.toLowerCase(), 'instance'],
  ]);
  const carriers = new Set([...apiKey, ...productSecret, 'authorization']);
  for (const alias of apiKey) names.set(alias, 'apiKey');
  for (const alias of productSecret) names.set(alias, 'productSecret');
  return ({ rawHeaders }) => {
    const found: Record<HeaderName, string[]> = {
      host: [],
      contentType: [],
      contentEncoding: [],
      transferEncoding: [],
      origin: [],
      referer: [],
      apiKey: [],
      productSecret: [],
      authorization: [],
      idempotencyKey: [],
      prefer: [],
      instance: [],
    };
    const credentials = new Map<string, string>();
    let areCredentialsDifferent = false;
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const sentName = (rawHeaders[index] ?? '').toLowerCase();
      const value = rawHeaders[index + 1] ?? '';
      const name = names.get(sentName);
      if (name !== undefined) found[name].push(value);
      if (!carriers.has(sentName)) continue;
      areCredentialsDifferent ||= (credentials.get(sentName) ?? value) !== value;
      credentials.set(sentName, value);
    }
    return { ...found, areCredentialsDifferent, count: rawHeaders.length / 2 };
  };
}

/** What tracing software calls a request: UUIDs, ULIDs, hexadecimal, base64, `Root=1-…`; it goes into logs and headers. */
const wellFormed = /^[\w.:@/+=~-]{1,128}$/;

const headerName = requestIdHeader.toLowerCase();

/** The caller's own id of a request, or a new one where it sent none that is well-formed (src/http/README.md, The id of a request). */
export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const sent = headers[headerName];
  return requestIdFrom(typeof sent === 'string' ? sent : undefined);
}

/** What the caller sent as the id of a request, or a new one. */
export function requestIdFrom(sent: string | undefined): string {
  const isKept = sent !== undefined && wellFormed.test(sent) && !containsLicenseKey(sent);
  return isKept ? sent : newRequestId();
}

/** For a request that has none of its own. */
export function newRequestId(): string {
  return randomUUID();
}
