import { integer } from './kind.ts';
import { parameters, type ParameterSet } from './parameters.ts';

const longestS = 30 * 86_400;

/** How an API key or a secret is rolled. An unknown parameter is refused: misspelt, it would stop the old one at once. */
export const rollParameters: ParameterSet<{ keepOldS?: number | undefined }> = parameters(
  { keep_old_s: integer(1, longestS).optional() },
  { unknown: 'refused' },
);
