import type { Answer } from '../answer.ts';
import type { App } from '../app.ts';
import { ProblemError } from '../problem-error.ts';
import type { Route } from '../route.ts';
import { refuse, type Result } from '../../domain/problem/problem.ts';
import type { Idempotency } from '../../service/ports.ts';

const longestKey = 255;
const quoted = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/;
const bare = /^[\x21\x23-\x7e]+$/;

/** What `readIdempotencyKey` takes, for the documentation. */
export const idempotencyKeyPattern: RegExp = /^(?:"(?:[ !#-[\]-~]|\\["\\]){1,255}"|[!#-~]{1,255})$/;

/**
 * Reads `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header): a quoted string, or bare as
 * many clients send it; `"k"` and `k` are the same key. Null when there is none.
 */
export function readIdempotencyKey(values: readonly string[]): string | null {
  const [value] = values;
  if (value === undefined) return null;
  const key = quoted.exec(value)?.[1]?.replaceAll(/\\(.)/g, '$1') ?? bare.exec(value)?.[0] ?? '';
  if (values.length > 1 || key === '' || key.length > longestKey) {
    const detail = `One key of 1 to ${longestKey} printable ASCII characters is expected, in quotes if it has a space or a quotation mark.`;
    throw new ProblemError('idempotency_key_malformed', detail);
  }
  return key;
}

/** What a request asks for: method, path, and what was read of its query and its body. */
type Asked = readonly [method: string, path: string, query: unknown, body: unknown];

/** What a write is under an idempotency key: another that asks for the same, of the same credential, is the same. */
export function requestUnder(
  key: string,
  { credential, asked }: { credential: string; asked: Asked },
  { digest }: Pick<App, 'digest'>,
): Idempotency {
  return { credential, key, fingerprint: digest(JSON.stringify(asked)) };
}

/** Has a route handle a request; meanwhile refuses another with the same idempotency key of the same credential. */
export async function handleOnce(
  route: Route,
  request: Parameters<Route['handle']>[0],
): Promise<Result<Answer>> {
  const { app, writeOptions } = request;
  const { idempotency } = writeOptions;
  if (idempotency === null) return await route.handle(request);
  const key = `${idempotency.credential} ${idempotency.key}`;
  if (app.inFlight.has(key)) {
    return refuse('idempotency_key_in_use', 'A request with this key is still being answered.', {
      retryAfterS: 1,
    });
  }
  app.inFlight.add(key);
  try {
    const stored = route.answersSecret === true ? null : idempotency;
    return await route.handle({ ...request, writeOptions: { ...writeOptions, idempotency: stored } });
  } finally {
    app.inFlight.delete(key);
  }
}
