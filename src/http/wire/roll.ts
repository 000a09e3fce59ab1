import { integer } from './common/kind.ts';
import { parameters, type ParameterSet } from './common/parameters.ts';

const longestS = 30 * 86_400;

/** For how long the old one goes on, in seconds; undefined: it stops at once. */
export type Roll = { keepOldS?: number | undefined };

/** How an API key or a secret is rolled. An unknown parameter is refused: misspelt, it would stop the old one at once. */
export const rollParameters: ParameterSet<Roll> = parameters(
  { keep_old_s: integer(1, longestS).optional() },
  { unknown: 'refused', id: 'Roll' },
);

/** Until when the old one goes on, in epoch ms; null: it stops at once. */
export function endOfOld({ keepOldS }: Roll, now: number): number | null {
  return keepOldS === undefined ? null : now + keepOldS * 1000;
}
