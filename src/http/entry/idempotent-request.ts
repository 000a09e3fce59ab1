import type { App } from '../app.ts';
import { ProblemError } from '../problem-error.ts';
import { refuse, type Result } from '../../domain/problem.ts';
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
    const detail = `One key of 1 to ${longestKey} printable characters, quoted or bare, is expected.`;
    throw new ProblemError('idempotency_key_malformed', detail);
  }
  return key;
}

/** Runs a write; while it runs, refuses another one with the same key of the same credential. */
export async function withoutConcurrentDuplicate<Value>(
  inFlight: App['inFlight'],
  idempotency: Idempotency | null,
  run: () => Promise<Result<Value>>,
): Promise<Result<Value>> {
  if (idempotency === null) return await run();
  const key = `${idempotency.credential} ${idempotency.key}`;
  if (inFlight.has(key)) {
    return refuse('idempotency_key_in_use', 'A request with this key is still being answered.', {
      retryAfterS: 1,
    });
  }
  inFlight.add(key);
  try {
    return await run();
  } finally {
    inFlight.delete(key);
  }
}
