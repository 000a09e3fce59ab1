import type { Tree } from '../../../config/file/tree.ts';
import type { AdvancingTime } from '../../../daemon/system/clock.ts';
import type { ForeignStoreName } from '../../../domain/header-names.ts';
import type { Log } from '../../../service/ports.ts';
import { SandboxDaemon } from '../sandbox-daemon.ts';
import type { StandIn } from './stand-in.ts';

/** A stand-in and the settings of an agent of it. `upstream`: besides `store` and `base_url`. */
export type AgentStore = {
  readonly store: StandIn;
  readonly settings: { readonly upstream: Tree; readonly products: readonly Tree[] };
};

/** The configuration of an agent of a stand-in. */
export function agentTree(
  name: ForeignStoreName,
  { store, settings }: AgentStore,
): Tree & { upstream: Tree } {
  return { ...settings, upstream: { store: name, base_url: store.url, ...settings.upstream } };
}

type AgentParts = {
  name: ForeignStoreName;
  sample: AgentStore;
  directory: string;
  time: AdvancingTime;
  log: Log;
};

/** An agent of a stand-in, as software and the seller see it. */
export class StoreAgent extends SandboxDaemon {
  readonly #parts: AgentParts;
  readonly #configuration: Tree;

  constructor(parts: AgentParts, configuration: Tree = {}) {
    super(parts);
    this.#parts = parts;
    this.#configuration = configuration;
  }

  protected override configurationAt(tcp: string): Tree {
    const { upstream: base, ...others } = agentTree(this.#parts.name, this.#parts.sample);
    const { upstream, ...rest } = this.#configuration;
    const listen = { tcp, socket: false };
    const both = { ...base, ...(upstream as object | undefined) };
    return { ...rest, ...others, state_dir: this.stateDir, listen, upstream: both };
  }

  /** What a program gets for a request: null if the connection was closed. */
  async post(
    path: string,
    body: URLSearchParams | string,
    headers: Record<string, string> = {},
  ): Promise<{ status: number; body: Record<string, unknown> } | null> {
    const response = await fetch(`${this.url}${path}`, { method: 'POST', body, headers }).catch(() => null);
    if (response === null) return null;
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  /** Whether no change waits. */
  async isSettled(): Promise<boolean> {
    const { pending, in_flight, uncertain } = await this.outboxDepth();
    return pending + in_flight + uncertain === 0;
  }
}
