import { X509Certificate } from 'node:crypto';
import * as http from 'node:http';
import * as https from 'node:https';
import type { TLSSocket } from 'node:tls';
import type { Address } from './address.ts';
import type { Headers } from './wire.ts';

/** One request to the agent. */
export interface Request {
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

export interface Reply {
  /** The `Address.agent` of the agent that answered. */
  readonly from: string;
  readonly status: number;
  readonly headers: Headers;
  /** The parsed body. Null: the body is not JSON. */
  readonly body: unknown;
}

/** The request got no response. */
export class NoReply extends Error {
  /** The agent that may have received the request. Null: no agent received it. */
  readonly sentTo: string | null;

  constructor(sentTo: string | null, cause: unknown) {
    const first: unknown = cause instanceof AggregateError ? cause.errors[0] : cause;
    super(first instanceof Error ? first.message : String(first), { cause });
    this.sentTo = sentTo;
    // An error of the HTTP parser carries the bytes that it read, which may contain a license key.
    if (cause instanceof Error) Reflect.deleteProperty(cause, 'rawPacket');
  }
}

const maximumBytes = 4 * 1024 * 1024;
/** Idle connections are kept for the next request. They do not keep the program alive. */
const pooling = { keepAlive: true, maxSockets: 64 };

/** Sends requests to an agent over TCP or a Unix socket. Sends each request once. */
export class Transport {
  readonly #plain = new http.Agent(pooling);
  /** One pool for each certificate that is the only one to trust. Null: trusts what Node trusts. */
  readonly #secure = new Map<string | null, https.Agent>();

  /** Sends to the first address that accepts a connection. Rejects with a `NoReply`. */
  async send(addresses: readonly Address[], request: Request, signal: AbortSignal): Promise<Reply> {
    let failure = new NoReply(null, new Error('no running agent was found'));
    const dead = new Set<string>();
    for (const address of addresses) {
      // If the agent was killed, another program may own its port now: send it no secret.
      if (address.kind === 'tcp' && address.socket !== null && dead.has(address.socket)) continue;
      try {
        return await this.#sendTo(address, request, signal);
      } catch (error) {
        failure = error as NoReply;
        if (failure.sentTo !== null || signal.aborted) break;
        if (address.kind === 'socket' && codeOf(failure.cause) === 'ECONNREFUSED') dead.add(address.path);
      }
    }
    throw failure;
  }

  close(): void {
    this.#plain.destroy();
    for (const agent of this.#secure.values()) agent.destroy();
  }

  async #sendTo(address: Address, request: Request, signal: AbortSignal): Promise<Reply> {
    const isSecure = address.kind === 'tcp' && address.url.protocol === 'https:';
    const sending = this.#open(address, request, signal);
    return await new Promise((resolve, reject) => {
      let isConnected = false;
      sending.on('socket', (socket) => {
        isConnected = !socket.connecting;
        if (isConnected) return;
        socket.once(isSecure ? 'secureConnect' : 'connect', () => {
          isConnected = !socket.destroyed;
        });
      });
      sending.on('error', (error) => {
        reject(new NoReply(isConnected ? address.agent : null, error));
      });
      sending.on('upgrade', (_, socket) => {
        socket.destroy();
        reject(new NoReply(address.agent, new Error('the server switched to another protocol')));
      });
      sending.on('response', (response) => {
        collect(response).then(
          (reply) => resolve({ from: address.agent, ...reply }),
          (error: unknown) => reject(new NoReply(address.agent, error)),
        );
      });
      sending.end(request.body ?? undefined);
    });
  }

  /** Throws a `NoReply` if the address is not valid. */
  #open(address: Address, { method, path, headers }: Request, signal: AbortSignal): http.ClientRequest {
    try {
      const options = { method, path, headers, signal, ...this.#target(address, path) };
      return options.agent instanceof https.Agent ? https.request(options) : http.request(options);
    } catch (error) {
      throw new NoReply(null, error);
    }
  }

  #target(address: Address, path: string): https.RequestOptions {
    if (address.kind === 'socket') return { socketPath: address.path, host: 'localhost', agent: this.#plain };
    const { url, certificate } = address;
    // Node wants an IPv6 address without the brackets.
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const target = { host, port: url.port, path: url.pathname.replace(/\/$/, '') + path };
    if (url.protocol === 'http:') return { ...target, agent: this.#plain };
    return { ...target, agent: this.#securePool(certificate) };
  }

  /** Each certificate has its own pool: Node does not reuse a connection if the request itself sets what to trust. */
  #securePool(certificate: string | null): https.Agent {
    const existing = this.#secure.get(certificate);
    if (existing !== undefined) return existing;
    const agent = certificate === null ? new https.Agent(pooling) : new PinningAgent(certificate);
    this.#secure.set(certificate, agent);
    return agent;
  }
}

function codeOf(error: unknown): unknown {
  return (error as NodeJS.ErrnoException | undefined)?.code;
}

/** Trusts one certificate, whatever its names and dates are: `listen.json` names it together with the address. */
class PinningAgent extends https.Agent {
  readonly #fingerprint: string;

  constructor(certificate: string) {
    // A resumed session may not show the certificate.
    super({ ...pooling, rejectUnauthorized: false, maxCachedSessions: 0 });
    this.#fingerprint = new X509Certificate(certificate).fingerprint256;
  }

  override createConnection(...args: Parameters<https.Agent['createConnection']>): TLSSocket {
    const socket = super.createConnection(...args) as TLSSocket;
    // Before the first byte is sent, at the time of Node's own check.
    socket.once('secureConnect', () => {
      if (socket.getPeerX509Certificate()?.fingerprint256 === this.#fingerprint) return;
      socket.destroy(new Error('the server shows another certificate'));
    });
    return socket;
  }
}

async function collect(response: http.IncomingMessage): Promise<Omit<Reply, 'from'>> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maximumBytes) throw new Error(`the response is longer than ${maximumBytes} bytes`);
    chunks.push(chunk);
  }
  const headers = Object.entries(response.headers).map(([name, value]) => [name, value?.toString()] as const);
  return {
    status: response.statusCode ?? 0,
    headers: Object.fromEntries(headers),
    body: parse(Buffer.concat(chunks).toString('utf8')),
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
