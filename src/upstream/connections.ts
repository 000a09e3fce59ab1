import type * as tls from 'node:tls';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import { buildConnector, type Dispatcher, EnvHttpProxyAgent, Pool } from 'undici';
import type { ProxyChoice } from './proxy.ts';

/** How to connect to the upstream. */
export type ConnectionSettings = {
  baseUrl: string;
  timeoutMs: number;
  /** The trusted authorities; called for the first connection that may use TLS. */
  trust: () => tls.SecureContext;
  /** The proxy; null if there is none. */
  proxy: () => ProxyChoice | null;
  /** Connect to this address instead of the host of the base URL, without a proxy. */
  connectTo: { host: string; port: number | null } | null;
  /** How many connections may be open; asked before each request, because a reload may change it. */
  maxConnections: () => number;
};

/** The keep-alive connections to one upstream, which can be replaced by fresh ones. */
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
      this.discard(this.#current);
    }
    return this.#current;
  }

  /**
   * Lets the next request begin on a new connection. After an ambiguous response the used connection is not trusted,
   * and idle ones are probably dead as well. Requests under way on the old connections end normally.
   */
  discard(used: Dispatcher): void {
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

/** No HTTP/2 and no pipelining; undici retries nothing unless asked. */
function makeDispatcher(settings: ConnectionSettings, maxConnections: number): Dispatcher {
  const { timeoutMs } = settings;
  // Half of the timeout is left for the exchange: a connection that is made at the last moment would only make the
  // outcome uncertain. undici rounds up by as much as a second; the deadline of the whole is exact.
  const connectTimeoutMs = Math.ceil(timeoutMs / 2);
  const proxy = settings.proxy();
  const mayUseTls = [settings.baseUrl, proxy?.url].some((url) => url?.startsWith('https:') === true);
  const trust = mayUseTls ? { secureContext: settings.trust() } : {};
  const proxyUrl = proxy?.url ?? '';
  const connect = { ...trust, allowH2: false, timeout: connectTimeoutMs };
  const agentOptions: EnvHttpProxyAgent.Options = {
    allowH2: false,
    pipelining: 1,
    connections: maxConnections,
    connect: connectElsewhere(settings, connect) ?? buildConnector(connect),
    factory: (origin, options: Pool.Options) =>
      new Pool(origin, { ...options, connect: connectorOf(options) }),
    connectTimeout: connectTimeoutMs,
    requestTls: { ...trust, timeout: connectTimeoutMs },
    proxyTls: { ...trust, timeout: connectTimeoutMs },
    // Without a limit, a proxy that never answers CONNECT would hold its connection for undici's default of five
    // minutes.
    clientFactory: (origin, options) => new Pool(origin, { ...options, headersTimeout: connectTimeoutMs }),
    httpProxy: proxyUrl,
    httpsProxy: proxyUrl,
    noProxy: '',
  };
  try {
    return new EnvHttpProxyAgent(agentOptions);
  } catch (cause) {
    throw proxy === null ? cause : new Error(`${proxy.source} is not the URL of a proxy`, { cause });
  }
}

/** The connector that undici prepared: to the upstream, through a proxy's tunnel, or to a proxy. */
function connectorOf({ connect }: Pool.Options): buildConnector.connector {
  return withoutInterim(typeof connect === 'function' ? connect : buildConnector(connect));
}

/** Connects to another address; the server name and the certificate check in TLS stay those of the base URL. */
function connectElsewhere(
  { baseUrl, connectTo }: ConnectionSettings,
  options: buildConnector.BuildOptions,
): buildConnector.connector | null {
  if (connectTo === null) return null;
  const { host, port } = connectTo;
  const name = new URL(baseUrl).hostname.replace(/^\[|\]$/g, '');
  // Loaded on demand: it takes 1 MiB.
  const { checkServerIdentity } = createRequire(import.meta.url)('node:tls') as typeof tls;
  const connector = buildConnector({
    ...options,
    checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate),
  });
  return (asked, callback) => {
    connector({ ...asked, hostname: host, port: port === null ? asked.port : String(port) }, callback);
  };
}

/** How an interim response begins. */
const beginning = 'HTTP/1.1 100 ';
/**
 * Any minor version; a carriage return follows if there is no reason phrase. 101 (switching protocols) is not interim.
 */
const interim = /^HTTP\/1\.\d 1(?!01)\d\d[ \r]$/;
const end = '\r\n\r\n';
const maxBytes = 16_384;

/**
 * Removes interim responses (1xx) from what a connection receives. A client must ignore unexpected ones (RFC 9110,
 * section 15.2), but undici takes `100 Continue` for a broken response.
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

/** undici pulls from the socket with `read`. A response begins with the first bytes after a request was written. */
function dropInterim(socket: Socket): void {
  const read = socket.read.bind(socket) as (size?: number) => Buffer | null;
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  let isAtBeginning = true;
  let buffered: Buffer = Buffer.alloc(0);
  socket.write = (...args: unknown[]) => {
    isAtBeginning = true;
    return write(...args);
  };
  socket.read = (size) => {
    if (!isAtBeginning) return read(size);
    for (let chunk = read(); chunk !== null; chunk = read()) {
      buffered = afterInterim(Buffer.concat([buffered, chunk]));
      if (buffered.length > 0 && !mayBeInterim(buffered)) {
        const answer = buffered;
        isAtBeginning = false;
        buffered = Buffer.alloc(0);
        return answer;
      }
    }
    return null;
  };
}

/** The bytes after all complete interim responses at the beginning. */
function afterInterim(bytes: Buffer): Buffer {
  let rest = bytes;
  for (let at = rest.indexOf(end); at !== -1 && mayBeInterim(rest); at = rest.indexOf(end)) {
    rest = rest.subarray(at + end.length);
  }
  return rest;
}

/** Whether the bytes are, or may become, the beginning of an interim response. */
function mayBeInterim(bytes: Buffer): boolean {
  const start = bytes.toString('latin1', 0, beginning.length);
  return bytes.length <= maxBytes && interim.test(start + beginning.slice(start.length));
}
