import type { Tree } from '../../../config/file/tree.ts';
import type { AdvancingTime } from '../../../daemon/system/clock.ts';
import type { Log } from '../../../service/ports.ts';
import { RestartableDaemon, startServer } from '../daemon.ts';
import type { GumroadStore } from './gumroad.ts';

/** The product and the license key of every Gumroad sandbox. */
export const gumroadSample = {
  productId: 'SDGgCnivv6gTTHfVRfUBxQ==',
  permalink: 'QMGY',
  licenseKey: '85DB562A-C11D4B06-A2335A6B-8C079166',
} as const;

/** The configuration of an agent of a stand-in for Gumroad. */
export function gumroadAgentTree(
  store: Pick<GumroadStore, 'url' | 'accessToken'>,
): Tree & { upstream: object } {
  return {
    upstream: { store: 'gumroad', base_url: store.url, access_token: store.accessToken },
    products: [{ key: gumroadSample.productId }],
  };
}

/** An agent of a stand-in for Gumroad, as software and the seller see it. */
export class GumroadAgent {
  readonly #daemon = new RestartableDaemon(0);
  readonly #parts: { store: GumroadStore; directory: string; time: AdvancingTime; log: Log };
  readonly #configuration: Tree;

  constructor(
    parts: { store: GumroadStore; directory: string; time: AdvancingTime; log: Log },
    configuration: Tree = {},
  ) {
    this.#parts = parts;
    this.#configuration = configuration;
  }

  get url(): string {
    return this.#daemon.url;
  }

  async start(): Promise<void> {
    const { store, directory } = this.#parts;
    const base = gumroadAgentTree(store);
    const { upstream, ...rest } = this.#configuration;
    await this.#daemon.start(async (tcp) => {
      const listen = { tcp, socket: false };
      const both = { ...base.upstream, ...(upstream as object | undefined) };
      return await startServer(
        { ...rest, ...base, state_dir: directory, listen, upstream: both },
        this.#parts,
      );
    });
  }

  async stop(): Promise<void> {
    await this.#daemon.stop();
  }

  /** How many changes have not arrived. */
  async waiting(): Promise<number> {
    const {
      pending = 0,
      in_flight = 0,
      uncertain = 0,
    } = (await this.#daemon.running?.status())?.outbox?.depth ?? {};
    return pending + in_flight + uncertain;
  }
}

/** What a program gets for a verify: null if the connection was closed. */
export async function verifyAt(
  url: string,
  { licenseKey, isCounted = true }: { licenseKey: string; isCounted?: boolean },
): Promise<{ status: number; body: Record<string, unknown> } | null> {
  const { productId } = gumroadSample;
  const form = new URLSearchParams({ product_id: productId, license_key: licenseKey });
  if (!isCounted) form.set('increment_uses_count', 'false');
  const response = await fetch(`${url}/v2/licenses/verify`, { method: 'POST', body: form }).catch(() => null);
  if (response === null) return null;
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}
