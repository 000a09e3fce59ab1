import type { Dispatcher } from 'undici';
import type { DialectName } from '../../../src/domain/dialect.ts';
import { dialectNames } from '../../../src/domain/dialect.ts';
import type { Exchange } from '../../../src/upstream/exchange.ts';
import type { Transport } from '../../../src/upstream/transport.ts';
import { missing } from './ledger.ts';
import { SeededRandom } from './seeded-random.ts';

/** How an upstream says what the specification leaves open. */
export type Manners = { dialect: DialectName; unknown: 'bad request' | 'empty' | 'no data' };

/** The manners of a seed's upstream, by random choices of their own: the rest of the seed plays as without them. */
export function drawManners(seed: number): Manners {
  const random = new SeededRandom(seed ^ 0x5eed);
  return { dialect: random.pick(dialectNames), unknown: random.pick(['bad request', 'empty', 'no data']) };
}

/** The marks on the pages of the firewall before an upstream: nothing that it answers so has arrived there. */
export const firewallMarks: Readonly<Record<DialectName, Record<string, string>>> = {
  specification: {},
  payhip: { server: 'cloudflare', 'cf-mitigated': 'challenge' },
};

/** The way to an upstream with manners, given the way to one that speaks as specified. */
export function withManners(transport: Transport, { dialect, unknown }: Manners): Transport {
  if (dialect === 'specification') return transport;
  return {
    async send(request, signal) {
      const { came, leave } = await transport.send(request, signal);
      return { came: mannered(came, request, unknown), leave };
    },
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  };
}

const missingText = JSON.stringify(missing.body);

function mannered(
  came: Exchange,
  { method, path }: Dispatcher.DispatchOptions,
  unknown: Manners['unknown'],
): Exchange {
  if (came.type === 'failed' || !path.includes('/license/')) return came;
  // What has lost its body would say here that the key is unknown; nothing else than the upstream may say so.
  if (method === 'GET' && came.status === 200 && came.text === '') return { ...came, text: '{}' };
  if (came.status !== 404 || came.text !== missingText) return came;
  switch (unknown) {
    case 'bad request':
      return { ...came, status: 400, text: '{"error":true,"data":[],"message":"there is none"}' };
    case 'empty':
      return { ...came, status: 200, text: '' };
    case 'no data':
      return { ...came, status: 200, text: '{"data":[]}' };
    default:
      return unknown satisfies never;
  }
}
