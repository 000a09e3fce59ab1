import { done, type Result } from '../../domain/problem/problem.ts';
import type { Transaction } from '../tables.ts';

/** Makes the next licenses, up to `limit`, faster to find; returns how many are left. */
export function indexLicenses(
  { licenses }: Transaction,
  { limit }: { limit: number },
): Result<{ left: number }> {
  return done({ left: licenses.indexForSearch(limit) });
}
