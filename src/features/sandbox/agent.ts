import type { Tree } from '../../config/file/tree.ts';
import { adminClient, type LocalClient } from '../../daemon/local-client.ts';
import { dataOf } from './daemon.ts';
import { SandboxDaemon } from './sandbox-daemon.ts';
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
export class SandboxAgent extends SandboxDaemon {
  readonly #parts: AgentParts;

  constructor(parts: AgentParts) {
    super(parts);
    this.#parts = parts;
  }

  protected override configurationAt(tcp: string): Tree {
    return agentTree(this.#parts, { tcp, socket: this.socket });
  }

  /** Reads from the store, and sends the changes that wait, without delay. */
  async syncNow(): Promise<void> {
    if (this.isRunning) dataOf(await this.#admin().postJson('/admin/v1/sync/now', {}));
  }

  /** For the sandbox. */
  async issueToken(scopes: readonly string[], productKey: string): Promise<string> {
    const token = { scopes, product_key: productKey, label: 'sandbox' };
    return String(dataOf(await this.#admin().postJson('/admin/v1/tokens', token))['token']);
  }

  /** Whether the store has every change, except for changes that wait for a decision. */
  async isSettled(): Promise<boolean> {
    if (!this.isRunning) return false;
    const { pending, in_flight, uncertain, held } = await this.outboxDepth();
    return pending + in_flight + uncertain === held;
  }

  #admin(): LocalClient {
    return adminClient(this.#parts.directory, this.url);
  }
}
