import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage, RequestOptions } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { formatReason } from '../../config/fault/fault.ts';
import type { Endpoint } from './endpoint.ts';

// Not imported: an import reads every export, and that of `WebSocket` loads 26 ms of code that nothing here needs.
const { request: ask } = process.getBuiltinModule('node:http');

/** A request of the local interface. */
export interface Call {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  /** What is `undefined` is not sent. */
  readonly query?: Values;
  readonly form?: Values;
  readonly json?: unknown;
  /** Ends the wait for an answer. */
  readonly signal?: AbortSignal | undefined;
  /** Where the body of a 2xx answer goes when it may be too long for memory. */
  readonly sink?: Sink;
  /** How long to wait for the whole answer; default: longer than the daemon waits for its upstream. */
  readonly timeoutMs?: number;
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

/** An answer, or why there is none; `sent`: the daemon may have received the request; `silent`: its time was over. */
export type CallResult =
  | { readonly ok: true; readonly answer: Answer }
  | { readonly ok: false; readonly sent: boolean; readonly silent?: true; readonly reason: string };

/** Longer than the daemon waits for its upstream. */
const usualTimeoutMs = 35_000;
const maximumBytes = 64 * 1024 ** 2;

/** Sends one request to one endpoint. Rejects only with a `SinkError`. */
export async function call(endpoint: Endpoint, request: Call, token: string | null): Promise<CallResult> {
  const { sink, timeoutMs = usualTimeoutMs } = request;
  const signal = sink?.signal ?? endOf(request.signal, timeoutMs);
  let outgoing: ClientRequest | undefined;
  try {
    const { headers, body } = encode(request, token);
    const begin = await requesterOf(endpoint, signal);
    outgoing = begin({
      method: request.method ?? 'GET',
      path: `${request.path}${toQuery(request.query)}`,
      headers,
      signal,
      agent: false,
    });
    outgoing.end(body);
    // An error may come before anything else that is awaited.
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    const { statusCode: status = 0 } = response;
    const isForSink = sink !== undefined && status < 300;
    const read = isForSink ? await sink.fill(response) : parse(await readText(response));
    return { ok: true, answer: { status, headers: response.headers, body: read } };
  } catch (error) {
    if (error instanceof SinkError) throw error;
    const cause: unknown = signal.aborted ? signal.reason : error;
    const sent = outgoing !== undefined && !isConnectFailure(cause);
    const failure = { ok: false, sent, reason: explain(cause, timeoutMs) } as const;
    return isTimeout(cause) ? { ...failure, silent: true } : failure;
  } finally {
    outgoing?.destroy();
  }
}

/** Ends the wait when its time is over, or when whoever waits gives it up. */
function endOf(signal: AbortSignal | undefined, timeoutMs: number): AbortSignal {
  const timeout = AbortSignal.timeout(timeoutMs);
  return signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
}

/** What begins a request to an endpoint; TLS is loaded only where it is spoken. */
async function requesterOf(
  endpoint: Endpoint,
  signal: AbortSignal,
): Promise<(options: RequestOptions) => ClientRequest> {
  if (endpoint.kind === 'socket') return (options) => ask({ ...options, socketPath: endpoint.path });
  const { url, certificate } = endpoint;
  if (certificate === null) return (options) => ask(url.origin, options);
  const socket = await connectTo(url, certificate, signal);
  // With an agent of any kind, Node would make a connection of its own.
  return (options) => ask({ ...options, agent: undefined, createConnection: () => socket });
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > maximumBytes) throw new Error(`the answer is longer than ${maximumBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/**
 * Connects to where one certificate is shown, whoever signed it, whatever host names it has, and also when it has ended:
 * the daemon of the state directory wrote it there, and is called by its address. Node refuses one that has ended
 * before it lets anybody compare; so it is compared here, before anything is sent.
 */
async function connectTo(
  { hostname, port }: URL,
  certificate: string,
  signal: AbortSignal,
): Promise<TLSSocket> {
  const { fingerprint256 } = new X509Certificate(certificate);
  const { connect } = await import('node:tls');
  // An address in brackets is IPv6.
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const socket = connect({ host, port: Number(port || 443), rejectUnauthorized: false });
  try {
    await once(socket, 'secureConnect', { signal });
    const shown = socket.getPeerX509Certificate()?.fingerprint256;
    if (shown !== fingerprint256) throw new Error('another certificate is shown there');
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
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
      // Commands understand a problem, whatever `listen.dialect` and `listen.unknown` have for other software.
      accept: 'application/json, application/problem+json',
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
function isConnectFailure(cause: unknown): boolean {
  if (cause instanceof AggregateError) return true;
  return cause instanceof Error && (cause as NodeJS.ErrnoException).syscall === 'connect';
}

function isTimeout(cause: unknown): boolean {
  return cause instanceof DOMException && cause.name === 'TimeoutError';
}

function explain(cause: unknown, timeoutMs: number): string {
  if (isTimeout(cause)) return `no answer within ${timeoutMs / 1000} seconds`;
  const first: unknown = cause instanceof AggregateError ? cause.errors[0] : cause;
  return first instanceof Error && !('errno' in first) ? first.message : formatReason(first);
}
