import type * as tls from 'node:tls';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import { buildConnector, type Dispatcher, EnvHttpProxyAgent, Pool } from 'undici';
import type { ProxyChoice } from './proxy.ts';

/** How the way to the upstream is built. */
export type ConnectionSettings = {
  baseUrl: string;
  timeoutMs: number;
  /** Whom to trust in TLS; called for the first connection that may speak TLS. */
  trust: () => tls.SecureContext;
  /** Through what connections go, if not to the upstream itself. */
  proxy: () => ProxyChoice | null;
  /** Where to connect instead of where the name in the base URL leads, and over no proxy. */
  connectTo: { host: string; port: number | null } | null;
  /** The most that are open at once; asked for before each request, since a reload may change it. */
  maxConnections: () => number;
};

/** The keep-alive connections to one upstream, which can be left behind for fresh ones. */
export class Connections implements AsyncDisposable {
  readonly #settings: ConnectionSettings;
  readonly #open: Set<Dispatcher> = new Set();
  #current: Dispatcher;
  #maxConnections: number;

  constructor(settings: ConnectionSettings) {
    this.#settings = settings;
    this.#maxConnections = settings.maxConnections();
    this.#current = this.#make();
  }

  get current(): Dispatcher {
    const maxConnections = this.#settings.maxConnections();
    if (maxConnections !== this.#maxConnections) {
      this.#maxConnections = maxConnections;
      this.leave(this.#current);
    }
    return this.#current;
  }

  /**
   * Lets the next request begin on a new connection: after an ambiguous answer the used one is not trusted,
   * and those that idle beside it have likely died with it. Requests under way there end undisturbed.
   */
  leave(used: Dispatcher): void {
    if (used !== this.#current || !this.#open.has(used)) return;
    this.#current = this.#make();
    const forget = (): boolean => this.#open.delete(used);
    used.close().then(forget, forget);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const open = [...this.#open];
    this.#open.clear();
    await Promise.all(open.map((dispatcher) => dispatcher.destroy()));
  }

  #make(): Dispatcher {
    const dispatcher = makeDispatcher(this.#settings, this.#maxConnections);
    this.#open.add(dispatcher);
    return dispatcher;
  }
}

/** No HTTP/2, no pipelining, and undici retries nothing by itself unless asked. */
function makeDispatcher(settings: ConnectionSettings, maxConnections: number): Dispatcher {
  const { timeoutMs } = settings;
  // Half of the time is kept for the exchange: a connection made at the last moment would only make uncertainty.
  // undici rounds it up by as much as a second; the deadline of the whole is exact.
  const connectTimeoutMs = Math.ceil(timeoutMs / 2);
  const proxy = settings.proxy();
  const mayUseTls = [settings.baseUrl, proxy?.url].some((url) => url?.startsWith('https:') === true);
  const trust = mayUseTls ? { secureContext: settings.trust() } : {};
  const proxyUrl = proxy?.url ?? '';
  const connect = { ...trust, allowH2: false, timeout: connectTimeoutMs };
  const way: EnvHttpProxyAgent.Options = {
    allowH2: false,
    pipelining: 1,
    connections: maxConnections,
    connect: connectElsewhere(settings, connect) ?? buildConnector(connect),
    factory: (origin, options: Pool.Options) =>
      new Pool(origin, { ...options, connect: connectorOf(options) }),
    connectTimeout: connectTimeoutMs,
    requestTls: { ...trust, timeout: connectTimeoutMs },
    proxyTls: { ...trust, timeout: connectTimeoutMs },
    // A proxy that never answers CONNECT would hold its connection for undici's default of five minutes.
    clientFactory: (origin, options) => new Pool(origin, { ...options, headersTimeout: connectTimeoutMs }),
    httpProxy: proxyUrl,
    httpsProxy: proxyUrl,
    noProxy: '',
  };
  try {
    return new EnvHttpProxyAgent(way);
  } catch (cause) {
    throw proxy === null ? cause : new Error(`${proxy.source} is not the URL of a proxy`, { cause });
  }
}

/** The connector that undici has prepared: to the upstream, through the tunnel of a proxy, or to a proxy. */
function connectorOf({ connect }: Pool.Options): buildConnector.connector {
  return withoutInterim(typeof connect === 'function' ? connect : buildConnector(connect));
}

/** Connects to another address than the name's; the name asked for in TLS and its certificate stay the name's. */
function connectElsewhere(
  { baseUrl, connectTo }: ConnectionSettings,
  options: buildConnector.BuildOptions,
): buildConnector.connector | null {
  if (connectTo === null) return null;
  const { host, port } = connectTo;
  const name = new URL(baseUrl).hostname.replace(/^\[|\]$/g, '');
  // Loaded where it is needed: it takes 1 MiB.
  const { checkServerIdentity } = createRequire(import.meta.url)('node:tls') as typeof tls;
  const connector = buildConnector({
    ...options,
    checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate),
  });
  return (asked, callback) => {
    connector({ ...asked, hostname: host, port: port === null ? asked.port : String(port) }, callback);
  };
}

/** How an interim answer begins. */
const beginning = 'HTTP/1.1 100 ';
/** Of any minor version; without a reason a carriage return follows. Protocols that are switched (101) are none. */
const interim = /^HTTP\/1\.\d 1(?!01)\d\d[ \r]$/;
const end = '\r\n\r\n';
const maximumBytes = 16_384;

/**
 * Takes interim answers (1xx) out of what a connection receives. A client has to pass over those that it did not ask for
 * (RFC 9110, section 15.2), but undici takes a `100 Continue` for a broken answer.
 */
export function withoutInterim(connector: buildConnector.connector): buildConnector.connector {
  return (options, callback) => {
    connector(options, (...[error, socket]) => {
      if (error !== null) {
        callback(error, null);
        return;
      }
      dropInterim(socket);
      callback(null, socket);
    });
  };
}

/** undici pulls from the socket with `read`. An answer begins with the first bytes after a request was written. */
function dropInterim(socket: Socket): void {
  const read = socket.read.bind(socket) as (size?: number) => Buffer | null;
  const write = socket.write.bind(socket) as (...given: unknown[]) => boolean;
  let isAtBeginning = true;
  let held: Buffer = Buffer.alloc(0);
  socket.write = (...given: unknown[]) => {
    isAtBeginning = true;
    return write(...given);
  };
  socket.read = (size) => {
    if (!isAtBeginning) return read(size);
    for (let chunk = read(); chunk !== null; chunk = read()) {
      held = afterInterim(Buffer.concat([held, chunk]));
      if (held.length > 0 && !mayBeInterim(held)) {
        const answer = held;
        isAtBeginning = false;
        held = Buffer.alloc(0);
        return answer;
      }
    }
    return null;
  };
}

/** What follows every whole interim answer at the beginning. */
function afterInterim(bytes: Buffer): Buffer {
  let rest = bytes;
  for (let at = rest.indexOf(end); at !== -1 && mayBeInterim(rest); at = rest.indexOf(end)) {
    rest = rest.subarray(at + end.length);
  }
  return rest;
}

/** Whether the bytes are the beginning of an interim answer, or may become one. */
function mayBeInterim(bytes: Buffer): boolean {
  const start = bytes.toString('latin1', 0, beginning.length);
  return bytes.length <= maximumBytes && interim.test(start + beginning.slice(start.length));
}
