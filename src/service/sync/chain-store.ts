import type { Tenant } from '../../domain/access/principal.ts';
import type { FreshnessPolicy } from '../../domain/agent/license-snapshot.ts';
import { protocolOf } from '../outbox/protocol.ts';
import type { Reader } from '../tables.ts';
import type { Writer } from '../writer.ts';
import type { SyncStore } from './ports.ts';

/** What an agent needs to answer the agents below it. */
export type ChainParts = {
  /** The ids of the configured products. */
  productIds: () => readonly string[];
  settings: () => { freshness: FreshnessPolicy; maxPending: number };
  /** Call it when the outbox has new operations. */
  wake: () => void;
  /** Call it when there may be keys to follow. */
  followNew: () => void;
};

/** The store of an agent in the middle, as the agents below see it. */
export function chainStore({
  reader,
  writer,
  productIds,
  settings,
  wake,
  followNew,
}: ChainParts & { reader: Reader; writer: Writer }): SyncStore {
  const visible = ({ productKey }: Tenant): readonly string[] =>
    productIds().filter((id) => productKey === null || id === productKey);
  return {
    // An agent that has begun is served in any case: what it cannot push would wait.
    isOffered: () => protocolOf(reader) === 'latchkey',
    async push(command, writeOptions) {
      const { freshness, maxPending } = settings();
      const full = { ...command, productIds: visible(command.tenant), freshness, maxPending };
      const taken = await writer.write('takePush', full, writeOptions);
      if (taken.ok && taken.unchanged !== true) wake();
      return taken;
    },
    async follow(command, writeOptions) {
      const followed = await writer.write('followFromBelow', command, writeOptions);
      if (followed.ok) followNew();
      return followed;
    },
    followed: ({ tenant, ...query }) => reader.chain.followed({ ...query, productIds: visible(tenant) }),
    isTaken: (id) => reader.operations.get(id) !== null,
  };
}
