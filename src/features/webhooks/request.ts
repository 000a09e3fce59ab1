import type { LookupFunction } from 'node:net';
import type { SecureContext } from 'node:tls';
import { Client } from 'undici';
import { describeFailure } from '../../domain/connection-failure.ts';
import type { Attempt } from './domain/webhook.ts';
import type { Destination } from './address.ts';

/** The answer of a receiver is not used: more of it is not read, in bytes. */
const maxAnswerBytes = 64 * 1024;
const maxHeaderBytes = 16 * 1024;
const connectTimeoutMs = 5_000;

export type Post = {
  destination: Destination;
  headers: Readonly<Record<string, string>>;
  body: string;
  trust: () => SecureContext;
  /** Ends the attempt. Its reason is an error that says why. */
  signal: AbortSignal;
};

/**
 * Posts once, on a connection of its own to the addresses that were checked, without a proxy. Follows no redirect. Never
 * rejects.
 */
export async function post({
  destination,
  headers,
  body,
  trust,
  signal,
}: Post): Promise<Omit<Attempt, 'durationMs'>> {
  const { url, addresses } = destination;
  // Node asks for all addresses, or for one.
  const lookup: LookupFunction = (_, { all }, callback) => {
    const [first] = addresses;
    if (all === true) callback(null, [...addresses]);
    else callback(null, first?.address ?? '', first?.family);
  };
  const client = new Client(url.origin, {
    allowH2: false,
    pipelining: 1,
    maxHeaderSize: maxHeaderBytes,
    connect: {
      lookup,
      timeout: connectTimeoutMs,
      ...(url.protocol === 'https:' && { secureContext: trust() }),
    },
  });
  try {
    const response = await client.request({
      method: 'POST',
      path: `${url.pathname}${url.search}`,
      headers,
      body,
      signal,
    });
    // The status decides. The rest only lets the receiver end its answer.
    await response.body.dump({ limit: maxAnswerBytes, signal }).catch(() => undefined);
    return resultOf(response.statusCode, response.headers['retry-after']);
  } catch (error) {
    const failure: unknown = signal.aborted ? signal.reason : error;
    const reason = failure instanceof Error ? describeFailure(failure) : 'failed';
    return { status: null, error: reason, retryAfterMs: null };
  } finally {
    await client.destroy();
  }
}

function resultOf(status: number, retryAfter: string | string[] | undefined): Omit<Attempt, 'durationMs'> {
  if (status >= 200 && status < 300) return { status, error: null, retryAfterMs: null };
  const seconds = typeof retryAfter === 'string' && /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) : 0;
  const isRedirect = status >= 300 && status < 400;
  const error = isRedirect ? `answered ${status}: redirects are not followed` : `answered ${status}`;
  return { status, error, retryAfterMs: seconds > 0 ? seconds * 1000 : null };
}
