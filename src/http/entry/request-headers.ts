import type { IncomingMessage } from 'node:http';
import { idempotencyKeyHeader, instanceHeader } from '../../domain/header-names.ts';
import type { ServerSettings } from '../app.ts';

/** The headers that matter here, each with all its values: Node's own view hides duplicates. */
export type Head = {
  readonly host: readonly string[];
  readonly contentType: readonly string[];
  readonly contentEncoding: readonly string[];
  readonly origin: readonly string[];
  readonly referer: readonly string[];
  readonly apiKey: readonly string[];
  readonly productSecret: readonly string[];
  readonly authorization: readonly string[];
  readonly idempotencyKey: readonly string[];
  readonly prefer: readonly string[];
  /** Which agents ask, where agents do. */
  readonly instance: readonly string[];
  /** How many header lines there were in all. */
  readonly count: number;
};

type HeaderName = Exclude<keyof Head, 'count'>;

/** Makes the reader of request heads for a listener, which knows the credentials under all their names. */
export function headReader({
  apiKey,
  productSecret,
}: ServerSettings['headerAliases']): (message: Pick<IncomingMessage, 'rawHeaders'>) => Head {
  const names = new Map<string, HeaderName>([
    ['host', 'host'],
    ['content-type', 'contentType'],
    ['content-encoding', 'contentEncoding'],
    ['origin', 'origin'],
    ['referer', 'referer'],
    ['authorization', 'authorization'],
    [idempotencyKeyHeader.toLowerCase(), 'idempotencyKey'],
    ['prefer', 'prefer'],
    [instanceHeader.toLowerCase(), 'instance'],
  ]);
  for (const alias of apiKey) names.set(alias, 'apiKey');
  for (const alias of productSecret) names.set(alias, 'productSecret');
  return ({ rawHeaders }) => {
    const found: Record<HeaderName, string[]> = {
      host: [],
      contentType: [],
      contentEncoding: [],
      origin: [],
      referer: [],
      apiKey: [],
      productSecret: [],
      authorization: [],
      idempotencyKey: [],
      prefer: [],
      instance: [],
    };
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = names.get((rawHeaders[index] ?? '').toLowerCase());
      if (name !== undefined) found[name].push(rawHeaders[index + 1] ?? '');
    }
    return { ...found, count: rawHeaders.length / 2 };
  };
}
