import type { Dispatcher } from 'undici';
import { partsOfKey } from '../../../src/domain/agent/activated-key.ts';
import type { TakesChange } from '../../../src/service/agent/license.ts';
import type { Upstream } from '../../../src/service/ports.ts';
import type { Store } from '../../../src/stores/store.ts';
import type { Exchange, Transport } from '../../../src/upstream/exchange.ts';
import { missing, type Reply } from './ledger.ts';

/*
 * Upstreams that speak as a store with an API of its own, on the ledger of the simulation. Their products are known by their
 * secrets here, so that products can get other names as elsewhere.
 */

/** A body of null: none. */
type Shown = { status: number; body: Reply['body'] | null };

/** What is a store’s own in the simulation: its client, and its answers. */
export type SimulatedStore = {
  readonly connect: NonNullable<Store['connect']>;
  /** A request of the store’s API as the specification has it; null: the request is none of them. */
  readonly specified: (request: Dispatcher.DispatchOptions) => Dispatcher.DispatchOptions | null;
  /** The answer for a key that the store does not know. */
  readonly unknown: Reply;
  /** The answer for a disabled key, to a verify and to a use, which is not counted then. */
  readonly disabled: Reply;
  /** The answer about a license, whose members are those of the specification, and `activation_id` (null: of none). */
  readonly show: (license: Readonly<Record<string, unknown>>, path: string) => Shown;
  /** Every other key of the world is an activation of the key before it, which is only taken back. */
  readonly hasActivations?: true;
  /** A use may count several. */
  readonly countsSeveral?: true;
  /** The changes for which the store has a request; absent: all. */
  readonly takes?: TakesChange;
};

/** The way to a store, given the way to an upstream that speaks as specified. */
export function withStore(transport: Transport, store: SimulatedStore): Transport {
  return {
    async send(request, signal) {
      const specified = store.specified(request);
      if (specified === null) return await transport.send(request, signal);
      const { exchange, discard } = await transport.send(specified, signal);
      return { exchange: translated(exchange, store, specified.path), discard };
    },
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  };
}

const missingText = JSON.stringify(missing.body);
const verifyPath = /^\/api\/v2\/license\/(?:verify|usage)\b/;

function translated(exchange: Exchange, store: SimulatedStore, path: string): Exchange {
  if (exchange.type === 'failed') return exchange;
  const answer = ({ status, body }: Shown): Exchange => ({
    ...exchange,
    status,
    text: body === null ? '' : JSON.stringify(body),
  });
  if (exchange.status === 404 && exchange.text === missingText) return answer(store.unknown);
  const license = exchange.status === 200 ? licenseIn(exchange.text) : null;
  if (license === null) return exchange;
  const isHidden = license['enabled'] === false && verifyPath.test(path);
  const { licenseKey, activationId } = partsOfKey(String(license['license_key']));
  if (isHidden) return answer(activationId === null ? store.disabled : store.unknown);
  return answer(store.show({ ...license, license_key: licenseKey, activation_id: activationId }, path));
}

function licenseIn(text: string): Record<string, unknown> | null {
  try {
    const { data } = JSON.parse(text) as { data?: Record<string, unknown> };
    return data !== undefined && 'license_key' in data ? data : null;
  } catch {
    return null;
  }
}

/** Licenses by one client, and coupons, which the stores do not have here, by another. */
export function withLicensesOf(licenses: Pick<Upstream, 'verify' | 'change'>, others: Upstream): Upstream {
  return new Proxy(others, {
    get(target, name) {
      const from = name === 'verify' || name === 'change' ? licenses : target;
      const value: unknown = Reflect.get(from, name);
      return typeof value === 'function' ? (value.bind(from) as unknown) : value;
    },
  });
}
