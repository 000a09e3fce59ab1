import { findSocket } from '../../config/defaults.ts';
import type { Tree } from '../../config/file/tree.ts';
import type { Daemon } from '../../daemon/daemon.ts';
import { adminClient, type LocalClient } from '../../daemon/local-client.ts';
import { dataOf, RestartableDaemon, startServer } from './daemon.ts';
import type { SandboxParts, SandboxStore } from './store.ts';

/** The configuration of an agent in front of a store, which answers in the same dialect. */
export function agentConfiguration(
  { url, dialect, credentials }: Pick<SandboxStore, 'url' | 'dialect' | 'credentials'>,
  stateDir: string,
): Tree & { listen: object; upstream: object; products: object[] } {
  const { apiKey, productKey, productSecret } = credentials;
  return {
    state_dir: stateDir,
    listen: { tcp: '127.0.0.1:0', dialect },
    upstream: { base_url: url, api_key: apiKey, dialect },
    products: [{ key: productKey, secret: productSecret }],
  };
}

type AgentParts = SandboxParts & {
  store: SandboxStore;
  /** Further settings, as in a configuration file. */
  configuration: Readonly<Record<string, unknown>>;
  /** Default: a free port. */
  port?: number;
};

/** The configuration of an agent of a sandbox. Its products are added to the product of the store, or replace it. */
export function agentTree(
  { configuration, directory, store }: Pick<AgentParts, 'configuration' | 'directory' | 'store'>,
  addresses: { tcp: string; socket: string | false },
): Tree {
  const base = agentConfiguration(store, directory);
  const { listen, upstream, products, ...rest } = configuration as {
    listen?: object;
    upstream?: object;
    products?: readonly { key?: string }[];
  };
  const isReplaced = ({ key }: { key?: string }): boolean =>
    products?.some((product) => product.key === key) === true;
  return {
    ...rest,
    ...base,
    products: [...base.products.filter((product) => !isReplaced(product)), ...(products ?? [])],
    listen: { ...base.listen, ...listen, ...addresses },
    upstream: { ...base.upstream, ...upstream, base_url: store.url, api_key: store.credentials.apiKey },
  };
}

/** An agent. It can be stopped and started again. */
export class SandboxAgent {
  readonly #parts: AgentParts;
  readonly #daemon: RestartableDaemon;

  constructor(parts: AgentParts) {
    this.#parts = parts;
    this.#daemon = new RestartableDaemon(parts.port ?? 0);
  }

  /** The URL that software calls. It stays the same after the agent was stopped. */
  get url(): string {
    return this.#daemon.url;
  }

  /** The path of the Unix socket, or the name of the named pipe on Windows. */
  get socket(): string {
    return findSocket({ environment: {}, home: '', platform: process.platform }, this.stateDir);
  }

  get stateDir(): string {
    return this.#parts.directory;
  }

  async stop(): Promise<void> {
    await this.#daemon.stop();
  }

  async start(): Promise<void> {
    await this.#daemon.start((tcp) => this.#start(tcp));
  }

  async #start(tcp: string): Promise<Daemon> {
    return await startServer(agentTree(this.#parts, { tcp, socket: this.socket }), this.#parts);
  }

  /** Reads from the store, and sends the changes that wait, without delay. */
  async syncNow(): Promise<void> {
    if (this.#daemon.running !== null) dataOf(await this.#admin().postJson('/admin/v1/sync/now', {}));
  }

  /** For the sandbox. */
  async issueToken(scopes: readonly string[], productKey: string): Promise<string> {
    const token = { scopes, product_key: productKey, label: 'sandbox' };
    return String(dataOf(await this.#admin().postJson('/admin/v1/tokens', token))['token']);
  }

  /** Whether the store has every change, except for changes that wait for a decision. */
  async isSettled(): Promise<boolean> {
    if (this.#daemon.running === null) return false;
    const { pending, in_flight, uncertain, held } = await this.outboxDepth();
    return pending + in_flight + uncertain === held;
  }

  /** How many changes the store does not have, or may not have. */
  async outboxDepth(): Promise<{ pending: number; in_flight: number; uncertain: number; held: number }> {
    const outbox = (await this.#daemon.running?.status())?.outbox;
    const { pending = 0, in_flight = 0, uncertain = 0 } = outbox?.depth ?? {};
    return { pending, in_flight, uncertain, held: outbox?.held ?? 0 };
  }

  #admin(): LocalClient {
    return adminClient(this.#parts.directory, this.url);
  }
}
