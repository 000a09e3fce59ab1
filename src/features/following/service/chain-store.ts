import type { Tenant } from '../../../domain/access/principal.ts';
import { isUpstreamKnown } from '../../../service/outbox/upstream/identity.ts';
import type { Reader } from '../../../service/tables.ts';
import type { Writer } from '../../../service/writer.ts';
import type { SyncStore } from './ports.ts';

/** What an agent needs to answer the agents below it. */
export type ChainParts = {
  /** The ids of the configured products. */
  productIds: () => readonly string[];
  /** Call it when there may be keys to follow. */
  followNew: () => void;
};

type Parts = ChainParts & { reader: Reader; writer: Writer };

/** The store of an agent in the middle, as the agents below see it. */
export function chainStore(parts: Parts): SyncStore {
  const { reader, writer, productIds, followNew } = parts;
  const visible = ({ productKey }: Tenant): readonly string[] =>
    productIds().filter((id) => productKey === null || id === productKey);
  return {
    isOffered: () => isUpstreamKnown(reader),
    async follow(command, writeOptions) {
      const own = { productIds: visible(command.tenant) };
      const followed = await writer.write('followFromBelow', { ...command, ...own }, writeOptions);
      if (followed.ok) followNew();
      return followed;
    },
    followed: ({ tenant, ...query }) => reader.chain.followed({ ...query, productIds: visible(tenant) }),
    reached(tenant, licenseKeys) {
      const products = visible(tenant);
      return licenseKeys.filter((licenseKey) => {
        const snapshot = reader.snapshots.get(licenseKey);
        if (snapshot === null || !products.includes(snapshot.productId)) return false;
        return !snapshot.gone && snapshot.missingSince === null;
      });
    },
  };
}
