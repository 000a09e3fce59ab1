import { X509Certificate } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { ConnectionOptions, PeerCertificate } from 'node:tls';
import { Client } from 'undici';
import { formatReason } from '../../config/fault.ts';
import type { Endpoint } from './endpoint.ts';

/** A request of the local interface. */
export interface Call {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  /** What is `undefined` is not sent. */
  readonly query?: Values;
  readonly form?: Values;
  readonly json?: unknown;
  /** Where the body of a 2xx answer goes when it may be too long for memory. */
  readonly sink?: Sink;
}

/** Takes a long body, without a time limit; `signal` ends it. */
export interface Sink {
  /** Resolves to what the answer has as its body; rejects with a `SinkError` when writing fails. */
  readonly fill: (body: AsyncIterable<Uint8Array>) => Promise<unknown>;
  readonly signal: AbortSignal;
}

/** The body of an answer could not be written. */
export class SinkError extends Error {}

export type Values = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Parsed JSON, or the text when it is none; null: there is no body. */
  readonly body: unknown;
}

/** An answer, or why there is none; `sent`: the daemon may have received the request. */
export type CallResult =
  | { readonly ok: true; readonly answer: Answer }
  | { readonly ok: false; readonly sent: boolean; readonly reason: string };

/** Longer than the daemon waits for its upstream. */
const timeoutMs = 35_000;
const maximumBytes = 64 * 1024 ** 2;
const unlimited = -1;

/** Sends one request to one endpoint. Rejects only with a `SinkError`. */
export async function call(endpoint: Endpoint, request: Call, token: string | null): Promise<CallResult> {
  const { sink } = request;
  const client = connect(endpoint, sink === undefined ? maximumBytes : unlimited);
  try {
    const { statusCode, headers, body } = await client.request({
      method: request.method ?? 'GET',
      path: `${request.path}${toQuery(request.query)}`,
      signal: sink?.signal ?? AbortSignal.timeout(timeoutMs),
      ...encode(request, token),
    });
    const isForSink = sink !== undefined && statusCode < 300;
    const read = isForSink ? await sink.fill(body) : parse(await body.text());
    return { ok: true, answer: { status: statusCode, headers, body: read } };
  } catch (error) {
    if (error instanceof SinkError) throw error;
    return { ok: false, sent: !isConnectFailure(error), reason: explain(error) };
  } finally {
    await client.destroy();
  }
}

function connect(endpoint: Endpoint, maxResponseSize: number): Client {
  const options = { allowH2: false, maxResponseSize };
  if (endpoint.kind === 'socket') {
    return new Client('http://localhost', { ...options, socketPath: endpoint.path });
  }
  const { url, certificate } = endpoint;
  return new Client(
    url.origin,
    certificate === null ? options : { ...options, connect: trustOnly(certificate) },
  );
}

type Trust = Required<Pick<ConnectionOptions, 'ca' | 'allowPartialTrustChain' | 'checkServerIdentity'>>;

/**
 * Trusts one certificate, whoever signed it and whatever host names it has: the daemon of the state directory
 * wrote it there, and is called by its address.
 */
function trustOnly(certificate: string): Trust {
  const { fingerprint256 } = new X509Certificate(certificate);
  return {
    ca: certificate,
    allowPartialTrustChain: true,
    checkServerIdentity: (_, shown: PeerCertificate) =>
      shown.fingerprint256 === fingerprint256 ? undefined : new Error('another certificate is shown there'),
  };
}

function encode(
  { form, json }: Call,
  token: string | null,
): { readonly headers: Record<string, string>; readonly body: string | null } {
  const [type, body] =
    json === undefined
      ? ['application/x-www-form-urlencoded', form === undefined ? null : toParameters(form).toString()]
      : ['application/json', JSON.stringify(json)];
  return {
    headers: {
      // The daemon accepts this host whatever address it listens on.
      host: 'localhost',
      accept: 'application/json',
      ...(body === null ? {} : { 'content-type': type }),
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    },
    body,
  };
}

function toQuery(values: Values = {}): string {
  const parameters = toParameters(values);
  return parameters.size === 0 ? '' : `?${parameters.toString()}`;
}

function toParameters(values: Values): URLSearchParams {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
}

function parse(text: string): unknown {
  if (text === '') return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Whether connecting failed; for a name with several addresses Node collects the errors of all. */
function isConnectFailure(error: unknown): boolean {
  if (error instanceof AggregateError) return true;
  if (!(error instanceof Error)) return false;
  const { syscall, code } = error as NodeJS.ErrnoException;
  return syscall === 'connect' || code === 'UND_ERR_CONNECT_TIMEOUT';
}

function explain(error: unknown): string {
  if (error instanceof DOMException && error.name === 'TimeoutError') {
    return `no answer within ${timeoutMs / 1000} seconds`;
  }
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return first instanceof Error && !('errno' in first) ? first.message : formatReason(first);
}
