import { toldProductName } from '../../domain/license.ts';
import type { Reader } from '../tables.ts';

/** What the upstream called a product when it last spoke of one of its keys; null where it did not tell. */
export function lastProductName({ snapshots }: Pick<Reader, 'snapshots'>, productKey: string): string | null {
  const [latest] = snapshots.latest(productKey, 1);
  const snapshot = latest === undefined ? null : snapshots.get(latest);
  return snapshot === null ? null : toldProductName(snapshot.license);
}
