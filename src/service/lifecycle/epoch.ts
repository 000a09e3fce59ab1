import { storeOf } from '../../domain/latchkey.ts';
import { hexadecimal } from '../access/credential.ts';
import type { Random } from '../ports.ts';
import type { AuthorityTransaction, Transaction } from '../tables.ts';

const epochSetting = 'sync_epoch';

/**
 * Names the history of this store by 32 random hexadecimal digits. The first half names the store and stays. The second half
 * changes if the store was restored or copied, so that agents look for what the store has forgotten. It never changes on
 * an agent's word.
 */
export async function beginEpoch(
  { settings }: Pick<AuthorityTransaction, 'settings'>,
  random: Random,
  { isNew }: { isNew: boolean },
): Promise<void> {
  const before = await settings.get(epochSetting);
  if (before !== null && !isNew) return;
  const store = before === null ? hexadecimal(random.bytes(8)) : storeOf(before);
  await settings.set(epochSetting, store + hexadecimal(random.bytes(8)));
}

/** An agent names the store of the Latchkey above it, so that the agents below know when another store took its place. */
export function nameStoreAbove({ settings }: Transaction, above: string): void {
  const own = settings.get(epochSetting) ?? '';
  settings.set(epochSetting, storeOf(above) + own.slice(storeOf(own).length));
}
