import { X509Certificate } from 'node:crypto';
import * as http from 'node:http';
import * as https from 'node:https';
import type { TLSSocket } from 'node:tls';
import type { Address } from './address.ts';

/** One request of the interface. */
export interface Request {
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

export interface Reply {
  /** `Address.agent` of where it was sent. */
  readonly from: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Parsed JSON; null: it is none. */
  readonly body: unknown;
}

/** No answer; `sentTo`: which agent may have received the request; null: none. */
export class NoReply extends Error {
  readonly sentTo: string | null;

  constructor(sentTo: string | null, cause: unknown) {
    const first: unknown = cause instanceof AggregateError ? cause.errors[0] : cause;
    super(first instanceof Error ? first.message : String(first), { cause });
    this.sentTo = sentTo;
    // A parser's error carries what it read: perhaps a license key.
    if (cause instanceof Error) Reflect.deleteProperty(cause, 'rawPacket');
  }
}

const maximumBytes = 4 * 1024 * 1024;
/** Connections are kept for the next request, and do not keep the program alive. */
const pooling = { keepAlive: true, maxSockets: 64 };

/** Sends requests to an agent over TCP or a socket, each once. */
export class Transport {
  readonly #plain = new http.Agent(pooling);
  /** By the only certificate that each trusts; null: whatever Node trusts. */
  readonly #secure = new Map<string | null, https.Agent>();

  /** Sends to the first address that can be connected to. Rejects with a `NoReply`. */
  async send(addresses: readonly Address[], request: Request, signal: AbortSignal): Promise<Reply> {
    let failure = new NoReply(null, new Error('no running agent was found'));
    const dead = new Set<string>();
    for (const address of addresses) {
      // Who has the port of an agent that was killed is to see no secret.
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
        reject(new NoReply(address.agent, new Error('it speaks another protocol')));
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

  /** Throws a `NoReply` where the address makes no sense. */
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
    // An address in brackets is IPv6.
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const target = { host, port: url.port, path: url.pathname.replace(/\/$/, '') + path };
    if (url.protocol === 'http:') return { ...target, agent: this.#plain };
    return { ...target, agent: this.#trusting(certificate) };
  }

  /** The pool has the say whom to trust: Node keeps no connection of a request that says so itself. */
  #trusting(certificate: string | null): https.Agent {
    const known = this.#secure.get(certificate);
    if (known !== undefined) return known;
    const agent = certificate === null ? new https.Agent(pooling) : new PinningAgent(certificate);
    this.#secure.set(certificate, agent);
    return agent;
  }
}

function codeOf(error: unknown): unknown {
  return (error as NodeJS.ErrnoException | undefined)?.code;
}

/** Trusts one certificate, whatever names and dates it has: the agent wrote it where this program found the address. */
class PinningAgent extends https.Agent {
  readonly #fingerprint: string;

  constructor(certificate: string) {
    // A session that is resumed may not say whose it is.
    super({ ...pooling, rejectUnauthorized: false, maxCachedSessions: 0 });
    this.#fingerprint = new X509Certificate(certificate).fingerprint256;
  }

  override createConnection(...args: Parameters<https.Agent['createConnection']>): TLSSocket {
    const socket = super.createConnection(...args) as TLSSocket;
    // At this time Node makes its own check, too: nothing was sent yet.
    socket.once('secureConnect', () => {
      if (socket.getPeerX509Certificate()?.fingerprint256 === this.#fingerprint) return;
      socket.destroy(new Error('another certificate is shown there'));
    });
    return socket;
  }
}

async function collect(response: http.IncomingMessage): Promise<Omit<Reply, 'from'>> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maximumBytes) throw new Error(`the answer is longer than ${maximumBytes} bytes`);
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
