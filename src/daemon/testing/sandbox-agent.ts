import { join } from 'node:path';
import type { Daemon } from '../daemon.ts';
import type { LocalClient } from '../trial/local-client.ts';
import { adminOf, dataOf, start } from './sandbox-daemon.ts';
import type { SandboxParts } from './sandbox-parts.ts';
import type { SandboxStore } from './sandbox-store.ts';
import { Turns } from './turns.ts';

type AgentParts = SandboxParts & { store: SandboxStore; configuration: Readonly<Record<string, unknown>> };

/** The agent beside the software, which can be stopped and started again. */
export class SandboxAgent {
  readonly #parts: AgentParts;
  readonly #turns = new Turns();
  #daemon: Daemon | null = null;
  #port = 0;

  constructor(parts: AgentParts) {
    this.#parts = parts;
  }

  /** What software calls; the same one after it was stopped. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** The path of its Unix socket. */
  get socket(): string {
    return join(this.stateDir, 'latchkey.sock');
  }

  get stateDir(): string {
    return this.#parts.directory;
  }

  async stop(): Promise<void> {
    await this.#turns.take(async () => {
      const daemon = this.#daemon;
      this.#daemon = null;
      await daemon?.stop();
    });
  }

  async start(): Promise<void> {
    await this.#turns.take(() => this.#start());
  }

  async #start(): Promise<void> {
    if (this.#daemon !== null) return;
    const { configuration, credentials, dialect, directory, store, time } = this.#parts;
    const { listen, upstream, ...rest } = configuration as { listen?: object; upstream?: object };
    const tree = {
      ...rest,
      state_dir: directory,
      listen: { dialect, ...listen, tcp: `127.0.0.1:${this.#port}`, socket: this.socket },
      upstream: { dialect, ...upstream, base_url: store.url, api_key: credentials.apiKey },
      products: [{ key: credentials.productKey, secret: credentials.productSecret }],
    };
    this.#daemon = await start(tree, time);
    this.#port = Number(new URL(this.#daemon.addresses.tcp ?? '').port);
  }

  /** Asks the store, and delivers what waits, without delay. */
  async syncNow(): Promise<void> {
    if (this.#daemon !== null) dataOf(await this.#admin().postJson('/admin/v1/sync/now', {}));
  }

  /** For the sandbox. */
  async issueToken(scopes: readonly string[], productKey: string): Promise<string> {
    const token = { scopes, product_key: productKey, label: 'sandbox' };
    return String(dataOf(await this.#admin().postJson('/admin/v1/tokens', token))['token']);
  }

  /** Whether nothing waits to be taken by the store. */
  async isSettled(): Promise<boolean> {
    if (this.#daemon === null) return false;
    const { outbox } = await this.#daemon.status();
    if (outbox === null) return true;
    const { depth, held } = outbox;
    return depth.pending + depth.in_flight + depth.uncertain === held;
  }

  #admin(): LocalClient {
    return adminOf(this.#parts.directory, this.url);
  }
}
