import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type {
  Agent as HttpAgent,
  ClientRequest,
  IncomingHttpHeaders,
  IncomingMessage,
  RequestOptions,
} from 'node:http';
import { connect, type Socket } from 'node:net';
import { hostOf } from '../../config/value/address.ts';
import { formatReason } from '../../config/errors.ts';
import { socketAddress, tcpAddress } from '../../wire/proof.ts';
import type { Endpoint } from './endpoint.ts';

// An import would read every export, and `WebSocket` loads code for 26 ms.
const { Agent, request: sendRequest } = process.getBuiltinModule('node:http');

export interface Call {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  /** Values that are `undefined` are not sent. */
  readonly query?: Values;
  readonly form?: Values;
  readonly json?: unknown;
  readonly signal?: AbortSignal | undefined;
  /** Where the body of a 2xx response goes if it may be too large for memory. */
  readonly sink?: Sink;
  readonly timeoutMs?: number;
}

/** Receives a large body, without a time limit; `signal` ends it. */
export interface Sink {
  /** Resolves to the value that replaces the body; rejects with a `SinkError` if writing fails. */
  readonly fill: (body: AsyncIterable<Uint8Array>) => Promise<unknown>;
  readonly signal: AbortSignal;
}

export class SinkError extends Error {}

export type Values = Readonly<Record<string, string | number | boolean | undefined>>;

export interface DaemonResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Parsed JSON, or the text if it is not JSON; null if there is no body. */
  readonly body: unknown;
}

/**
 * A response, or why there is none. `sent`: the daemon may have received the request. `silent`: it timed out.
 * `doubted`: something answered, and did not prove that it is the daemon.
 */
export type CallResult =
  | { readonly ok: true; readonly answer: DaemonResponse }
  | {
      readonly ok: false;
      readonly sent: boolean;
      readonly silent?: true;
      readonly doubted?: true;
      readonly reason: string;
    };

/** Longer than the daemon waits for its upstream. */
const defaultTimeoutMs = 35_000;
const maxBytes = 64 * 1024 ** 2;

class ConnectionEnded extends Error {}

/** The only connection to an endpoint: a later request is never sent on another one. */
export class Connection implements Disposable {
  readonly #endpoint: Endpoint;
  #socket: Socket | null = null;
  readonly #agent: HttpAgent;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
    let unused = true;
    this.#agent = Object.assign(new Agent({ keepAlive: true, maxSockets: 1 }), {
      createConnection: (_: unknown, onError: (error: Error) => void) => {
        if (unused) {
          unused = false;
          return this.#socket;
        }
        onError(new ConnectionEnded('the connection was closed before the request was sent'));
        return undefined;
      },
    });
  }

  /** Connects at the first call. */
  async open(signal: AbortSignal): Promise<void> {
    this.#socket ??= await connectTo(this.#endpoint, signal);
  }

  begin(options: RequestOptions): ClientRequest {
    return sendRequest({ ...options, agent: this.#agent });
  }

  /** The address of the connection, as the daemon must prove it (wire/proof.ts). */
  get address(): string {
    if (this.#endpoint.kind === 'socket') return socketAddress(this.#endpoint.path);
    const { localAddress, localPort, remoteAddress, remotePort } = this.#socket ?? {};
    return tcpAddress({ host: remoteAddress, port: remotePort }, { host: localAddress, port: localPort });
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
    this.#socket?.destroy();
  }
}

/** Sends one request on a connection. Rejects only with a `SinkError`. */
export async function call(connection: Connection, request: Call, token: string | null): Promise<CallResult> {
  const { sink, timeoutMs = defaultTimeoutMs } = request;
  const signal = sink?.signal ?? endOf(request.signal, timeoutMs);
  let outgoing: ClientRequest | undefined;
  try {
    const { headers, body } = encode(request, token);
    await connection.open(signal);
    const path = `${request.path}${toQuery(request.query)}`;
    outgoing = connection.begin({ method: request.method ?? 'GET', path, headers, signal });
    outgoing.end(body);
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    const { statusCode: status = 0 } = response;
    const isForSink = sink !== undefined && status < 300;
    const read = isForSink ? await sink.fill(response) : parse(await readText(response));
    return { ok: true, answer: { status, headers: response.headers, body: read } };
  } catch (error) {
    if (error instanceof SinkError) throw error;
    const cause: unknown = signal.aborted ? signal.reason : error;
    const sent = outgoing !== undefined && !(cause instanceof ConnectionEnded);
    const failure = { ok: false, sent, reason: explain(cause, timeoutMs) } as const;
    return isTimeout(cause) ? { ...failure, silent: true } : failure;
  }
}

function endOf(signal: AbortSignal | undefined, timeoutMs: number): AbortSignal {
  const timeout = AbortSignal.timeout(timeoutMs);
  return signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
}

/** Connects to an endpoint. Loads TLS only if the endpoint uses it. */
async function connectTo(endpoint: Endpoint, signal: AbortSignal): Promise<Socket> {
  if (endpoint.kind === 'socket') return await untilOpen(connect(endpoint.path), 'connect', signal);
  const { url, certificate } = endpoint;
  const host = hostOf(url);
  const place = { host, port: Number(url.port || (url.protocol === 'https:' ? 443 : 80)) };
  if (certificate === null) return await untilOpen(connect(place), 'connect', signal);
  return await connectTls(place, certificate, signal);
}

async function untilOpen<Opening extends Socket>(
  socket: Opening,
  event: 'connect' | 'secureConnect',
  signal: AbortSignal,
): Promise<Opening> {
  try {
    await once(socket, event, { signal });
    // A connection may be lost between two requests.
    socket.on('error', () => undefined);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Error(`the response is longer than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/**
 * Connects to a server that must show exactly this certificate, which the daemon wrote into its state directory. Its
 * issuer, host names and end date do not matter. Node rejects an expired certificate before it can be compared, so the
 * comparison is made here, before anything is sent.
 */
async function connectTls(
  place: { host: string; port: number },
  certificate: string,
  signal: AbortSignal,
): Promise<Socket> {
  const { fingerprint256 } = new X509Certificate(certificate);
  const tls = await import('node:tls');
  const socket = await untilOpen(
    tls.connect({ ...place, rejectUnauthorized: false }),
    'secureConnect',
    signal,
  );
  const fingerprint = socket.getPeerX509Certificate()?.fingerprint256;
  if (fingerprint === fingerprint256) return socket;
  socket.destroy();
  throw new Error('the server shows another certificate');
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
      // Ask for a problem, whatever `listen.dialect` and `listen.unknown` configure for other software.
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
  const entries = Object.entries(values).filter(([, value]) => value !== undefined);
  return new URLSearchParams(entries.map(([name, value]) => [name, String(value)]));
}

function parse(text: string): unknown {
  if (text === '') return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function isTimeout(cause: unknown): boolean {
  return cause instanceof DOMException && cause.name === 'TimeoutError';
}

function explain(cause: unknown, timeoutMs: number): string {
  if (isTimeout(cause)) return `no response within ${timeoutMs / 1000} seconds`;
  // For a name with several addresses, Node collects the errors of all.
  const first: unknown = cause instanceof AggregateError ? cause.errors[0] : cause;
  return first instanceof Error && !('errno' in first) ? first.message : formatReason(first);
}
