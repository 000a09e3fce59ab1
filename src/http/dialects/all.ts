import type { Dialect } from './dialect.ts';
import { payhip } from './payhip.ts';
import { specification } from './specification.ts';

/** The dialects by their names in the configuration (`listen.dialect`). */
export const dialects: { readonly specification: Dialect; readonly payhip: Dialect } = {
  specification,
  payhip,
};
