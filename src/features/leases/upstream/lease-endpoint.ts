import { describeFailure } from '../../../domain/connection-failure.ts';
import type { ConnectionSettings } from '../../../upstream/connections.ts';
import type { IssuerReply } from '../../../service/ports.ts';
import { type Exchange, headerOf, networkTransport, tooLarge } from '../../../upstream/exchange.ts';
import { parseJson } from '../../../domain/text.ts';

export type LeaseEndpointSettings = ConnectionSettings & { userAgent: string };

/** The issuer of leases, as a holder sees it. */
export interface LeaseEndpoint extends AsyncDisposable {
  /** Sends a signed request, once. `waitS`: how long the issuer may wait for a change; 0: it answers at once. Never rejects. */
  send(document: string, options: { waitS: number; signal: AbortSignal }): Promise<IssuerReply>;
  /** Reads the key statement. */
  statement(signal: AbortSignal): Promise<IssuerReply>;
}

const maxReplyLength = 64 * 1024;
/** A proxy that asks to wait for longer is not believed. */
const maxRetryAfterS = 24 * 3600;

export function leaseEndpoint(settings: LeaseEndpointSettings): LeaseEndpoint {
  const transport = networkTransport(settings);
  const { origin, pathname } = new URL(settings.baseUrl);
  const path = `${pathname.replace(/(?<!\/)\/+$/, '')}/lease/v1`;
  const headers = {
    accept: 'application/json, application/problem+json',
    'user-agent': settings.userAgent,
  };
  return {
    async send(document, { waitS, signal }) {
      const wait: Record<string, string> = waitS === 0 ? {} : { prefer: `wait=${waitS}` };
      const { exchange, discard } = await transport.send(
        {
          origin,
          path,
          method: 'POST',
          headers: { ...headers, ...wait, 'content-type': 'application/jwt' },
          body: document,
        },
        signal,
        waitS * 1000,
      );
      if (exchange.type === 'failed') discard();
      return replyOf(exchange);
    },
    async statement(signal) {
      const { exchange } = await transport.send(
        { origin, path: `${path}/keys`, method: 'GET', headers },
        signal,
      );
      return replyOf(exchange);
    },
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  };
}

function replyOf(exchange: Exchange): IssuerReply {
  if (exchange.type === 'failed') {
    const { error } = exchange;
    return { kind: 'failed', detail: describeFailure(error), error };
  }
  const { status, headers, text } = exchange;
  if (status >= 300 && status < 400) {
    const location = headerOf(headers, 'location')?.slice(0, 200) ?? 'nowhere';
    return {
      kind: 'failed',
      detail: `HTTP ${status}, a redirect to ${location}, is not followed`,
    };
  }
  if (text.length > maxReplyLength) return { kind: 'failed', detail: tooLarge.message };
  const after = Number(headerOf(headers, 'retry-after') ?? Number.NaN);
  const retryAfterS = Number.isFinite(after) ? Math.min(Math.max(0, after), maxRetryAfterS) : null;
  return { kind: 'answered', status, body: parseJson(text), retryAfterS };
}
