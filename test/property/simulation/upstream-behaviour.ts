import type { Dispatcher } from 'undici';
import { type DialectName, dialectNames } from '../../../src/domain/header-names.ts';
import type { Exchange, Transport } from '../../../src/upstream/exchange.ts';
import { withStore, type SimulatedStore } from './at-store.ts';
import { missing } from './ledger.ts';
import { SeededRandom } from './seeded-random.ts';

/** How an upstream behaves where the specification leaves a choice. */
export type UpstreamBehaviour = {
  dialect: DialectName;
  unknown: 'bad request' | 'empty' | 'no data';
  /** It speaks as this store does, about licenses. */
  store?: SimulatedStore;
};

/** The stores are behind a firewall whose pages have its marks. */
export function behaviourOf(store: SimulatedStore): UpstreamBehaviour {
  return { dialect: 'payhip', unknown: 'empty', store };
}

/** The behaviour of a seed's upstream, by random choices of their own: the rest of the seed plays as without them. */
export function drawBehaviour(seed: number): UpstreamBehaviour {
  const random = new SeededRandom(seed ^ 0x5eed);
  return { dialect: random.pick(dialectNames), unknown: random.pick(['bad request', 'empty', 'no data']) };
}

/** The marks on the pages of the firewall before an upstream: nothing that it answers so has arrived there. */
export const firewallMarks: Readonly<Record<DialectName, Record<string, string>>> = {
  specification: {},
  payhip: { server: 'cloudflare', 'cf-mitigated': 'challenge' },
};

/** The way to an upstream with behaviour, given the way to one that speaks as specified. */
export function withBehaviour(
  transport: Transport,
  { dialect, unknown, store }: UpstreamBehaviour,
): Transport {
  if (store !== undefined) return withStore(transport, store);
  if (dialect === 'specification') return transport;
  return {
    async send(request, signal) {
      const { exchange, discard } = await transport.send(request, signal);
      return { exchange: behaving(exchange, request, unknown), discard };
    },
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  };
}

const missingText = JSON.stringify(missing.body);

function behaving(
  exchange: Exchange,
  { method, path }: Dispatcher.DispatchOptions,
  unknown: UpstreamBehaviour['unknown'],
): Exchange {
  if (exchange.type === 'failed' || !path.includes('/license/')) return exchange;
  // What has lost its body would say here that the key is unknown; nothing else than the upstream may say so.
  if (method === 'GET' && exchange.status === 200 && exchange.text === '') return { ...exchange, text: '{}' };
  if (exchange.status !== 404 || exchange.text !== missingText) return exchange;
  switch (unknown) {
    case 'bad request':
      return { ...exchange, status: 400, text: '{"error":true,"data":[],"message":"there is none"}' };
    case 'empty':
      return { ...exchange, status: 200, text: '' };
    case 'no data':
      return { ...exchange, status: 200, text: '{"data":[]}' };
    default:
      return unknown satisfies never;
  }
}
