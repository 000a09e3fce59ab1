import { toldProductName } from '../../domain/license.ts';
import type { Reader } from '../tables.ts';

/** What the upstream called a product when it last spoke of one of its keys; null where it did not tell. */
export function lastProductName(
  { observations }: Pick<Reader, 'observations'>,
  productKey: string,
): string | null {
  const [latest] = observations.latest(productKey, 1);
  const observation = latest === undefined ? null : observations.get(latest);
  return observation === null ? null : toldProductName(observation.license);
}
