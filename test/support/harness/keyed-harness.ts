import type { Operation } from '../../../src/domain/outbox/operation.ts';
import type { LatchkeyVendor } from './latchkey-vendor.ts';
import type { SyncHarness } from './sync-harness.ts';

/** An agent whose upstream is a Latchkey. */
export type KeyedHarness = SyncHarness & { latchkey: LatchkeyVendor };

export const upstreamUses = ({ vendor }: SyncHarness, key: string) => vendor.licenses.get(key)?.uses;
export const shown = async (harness: SyncHarness, key: string) => {
  const verified = await harness.verify(key);
  return verified.ok ? verified.value.license : null;
};
export const newest = ({ store }: SyncHarness): Operation => {
  const operation = store.operations.get(String(allIds(store).at(-1)));
  if (operation === null) throw new Error('there is no operation');
  return operation;
};
export const allIds = (store: SyncHarness['store']): string[] =>
  (['pending', 'in_flight', 'uncertain', 'delivered', 'inferred', 'conflicted', 'dead', 'cancelled'] as const)
    .flatMap((state) => store.operations.list(state, { limit: 1_000, offset: 0 }))
    .toSorted((one, other) => one.seq - other.seq)
    .map(({ id }) => id);

/** Makes the agent record changes that it cannot send yet. */
export async function offline(harness: KeyedHarness, work: () => Promise<unknown>): Promise<void> {
  harness.sync.limiter.pause();
  await work();
}
