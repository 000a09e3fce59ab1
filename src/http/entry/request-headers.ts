import type { IncomingMessage } from 'node:http';
import { credentialHeaders, idempotencyKeyHeader, instanceHeader } from '../../domain/header-names.ts';
import type { App, ServerSettings } from '../app.ts';

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
