import type * as tls from 'node:tls';
import { createRequire } from 'node:module';
import type * as undici from 'undici';
import { withoutInterim } from './interim-responses.ts';
import type { ProxyChoice } from './proxy.ts';
import { buildConnector, EnvHttpProxyAgent, Pool } from './undici.ts';

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
  readonly #open: Set<undici.Dispatcher> = new Set();
  #current: undici.Dispatcher;
  #maxConnections: number;

  constructor(settings: ConnectionSettings) {
    this.#settings = settings;
    this.#maxConnections = settings.maxConnections();
    this.#current = this.#make();
  }

  get current(): undici.Dispatcher {
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
  discard(used: undici.Dispatcher): void {
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

  #make(): undici.Dispatcher {
    const dispatcher = makeDispatcher(this.#settings, this.#maxConnections);
    this.#open.add(dispatcher);
    return dispatcher;
  }
}

/** No HTTP/2 and no pipelining; undici retries nothing unless asked. */
function makeDispatcher(settings: ConnectionSettings, maxConnections: number): undici.Dispatcher {
  const { timeoutMs } = settings;
  // Half of the timeout is left for the exchange: a connection that is made at the last moment would only make the
  // outcome uncertain. undici rounds up by as much as a second; the deadline of the whole is exact.
  const connectTimeoutMs = Math.ceil(timeoutMs / 2);
  const proxy = settings.proxy();
  const mayUseTls = [settings.baseUrl, proxy?.url].some((url) => url?.startsWith('https:') === true);
  const trust = mayUseTls ? { secureContext: settings.trust() } : {};
  const proxyUrl = proxy?.url ?? '';
  const connect = { ...trust, allowH2: false, timeout: connectTimeoutMs };
  const agentOptions: undici.EnvHttpProxyAgent.Options = {
    allowH2: false,
    pipelining: 1,
    connections: maxConnections,
    connect: connectElsewhere(settings, connect) ?? buildConnector(connect),
    factory: (origin, options: undici.Pool.Options) =>
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
function connectorOf({ connect }: undici.Pool.Options): undici.buildConnector.connector {
  return withoutInterim(typeof connect === 'function' ? connect : buildConnector(connect));
}

/** Connects to another address; the server name and the certificate check in TLS stay those of the base URL. */
function connectElsewhere(
  { baseUrl, connectTo }: ConnectionSettings,
  options: undici.buildConnector.BuildOptions,
): undici.buildConnector.connector | null {
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
