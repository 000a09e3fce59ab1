import { connect, type Socket } from 'node:net';
import { Pool } from 'undici';
import { patienceMs } from '../patience.ts';

/** The address of a listener: `tcp` is a URL such as `http://127.0.0.1:8787`, `socket` is a path. */
export type Listener = { readonly tcp: string } | { readonly socket: string };

export interface RawResponse {
  /** undefined if the response is not HTTP, or empty. */
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** Everything after the first blank line, chunk sizes included. */
  readonly body: string;
  readonly raw: string;
  readonly ending: 'closed' | 'reset' | 'deadline';
}

export interface RawOptions {
  readonly deadlineMs?: number;
}

/**
 * Sends raw bytes and collects the response until the other side closes or the deadline passes. An async
 * iterable is sent chunk by chunk. Rejects if the connection is refused.
 */
export async function sendRaw(
  listener: Listener,
  bytes: string | Uint8Array | AsyncIterable<string | Uint8Array>,
  { deadlineMs = patienceMs }: RawOptions = {},
): Promise<RawResponse> {
  const socket = await connected(listener);
  const collected = collect(socket, deadlineMs);
  if (typeof bytes === 'string' || bytes instanceof Uint8Array) socket.write(bytes);
  else void writeEach(socket, bytes);
  const { raw, ending } = await collected;
  return { ...parseResponse(raw), raw, ending };
}

async function connected(listener: Listener): Promise<Socket> {
  const socket = 'socket' in listener ? connect(listener.socket) : connectTcp(new URL(listener.tcp));
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.once('connect', resolve).once('error', reject);
  await promise;
  return socket.off('error', reject);
}

function connectTcp(address: URL): Socket {
  return connect({ host: address.hostname.replace(/^\[|\]$/g, ''), port: Number(address.port || 80) });
}

function collect(socket: Socket, deadlineMs: number): Promise<Pick<RawResponse, 'raw' | 'ending'>> {
  const { promise, resolve } = Promise.withResolvers<Pick<RawResponse, 'raw' | 'ending'>>();
  const chunks: Buffer[] = [];
  let ending: RawResponse['ending'] = 'closed';
  const end = (as: RawResponse['ending']): void => {
    ending = as;
    socket.destroy();
  };
  const deadline = setTimeout(end, deadlineMs, 'deadline');
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', () => end('reset'));
  socket.once('close', () => {
    clearTimeout(deadline);
    resolve({ raw: Buffer.concat(chunks).toString(), ending });
  });
  return promise;
}

async function writeEach(socket: Socket, pieces: AsyncIterable<string | Uint8Array>): Promise<void> {
  for await (const piece of pieces) {
    if (socket.destroyed) return;
    socket.write(piece);
  }
}

function parseResponse(raw: string): Pick<RawResponse, 'status' | 'headers' | 'body'> {
  const [head = '', ...rest] = raw.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(statusLine)?.[1];
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
  }
  return { status: status === undefined ? undefined : Number(status), headers, body: rest.join('\r\n\r\n') };
}

/** At most one of `form`, `json` and `body`. A form given as pairs may contain a parameter twice. */
export interface RequestOptions {
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly form?: Readonly<Record<string, string>> | readonly (readonly [string, string])[];
  readonly json?: unknown;
  readonly body?: string;
  readonly signal?: AbortSignal;
}

export interface HttpResponse {
  readonly status: number;
  /** Names are in lower case; repeated headers are joined by commas. */
  readonly headers: Readonly<Record<string, string>>;
  /** The parsed value of a JSON response, otherwise the text. */
  readonly body: unknown;
}

type Send = (path: string, options?: RequestOptions) => Promise<HttpResponse>;

export interface HttpClient extends AsyncDisposable {
  readonly get: Send;
  readonly put: Send;
  readonly post: Send;
  readonly delete: Send;
}

/** An HTTP/1.1 client for TCP and Unix sockets, without retries and redirects. */
export function httpClient(listener: Listener): HttpClient {
  const common = { connections: 64, allowH2: false, headersTimeout: patienceMs, bodyTimeout: patienceMs };
  const pool =
    'socket' in listener
      ? new Pool('http://localhost', { ...common, socketPath: listener.socket })
      : new Pool(new URL(listener.tcp).origin, common);
  const sender =
    (method: 'GET' | 'PUT' | 'POST' | 'DELETE'): Send =>
    async (path, options = {}) => {
      const { type, body } = encode(options);
      const answer = await pool.request({
        method,
        path,
        headers: { ...(type !== undefined && { 'content-type': type }), ...options.headers },
        body: body ?? null,
        signal: options.signal ?? null,
      });
      const headers = Object.fromEntries(
        Object.entries(answer.headers).map(([name, value]) => [name, [value].flat().join(', ')]),
      );
      return { status: answer.statusCode, headers, body: decode(headers, await answer.body.text()) };
    };
  return {
    get: sender('GET'),
    put: sender('PUT'),
    post: sender('POST'),
    delete: sender('DELETE'),
    [Symbol.asyncDispose]: () => pool.destroy(),
  };
}

function encode({ form, json, body }: RequestOptions): { type?: string; body?: string } {
  if (form !== undefined) {
    const pairs = Array.isArray(form) ? form : Object.entries(form);
    return { type: 'application/x-www-form-urlencoded', body: new URLSearchParams(pairs).toString() };
  }
  if (json !== undefined) return { type: 'application/json', body: JSON.stringify(json) };
  return body === undefined ? {} : { body };
}

function decode(headers: HttpResponse['headers'], text: string): unknown {
  const isJson = /^application\/(?:[\w.-]+\+)?json\b/i.test(headers['content-type'] ?? '');
  return isJson && text !== '' ? JSON.parse(text) : text;
}
