import { readCoupons } from '../wire.ts';
import type { Dialect } from './dialect.ts';

/** The specification and nothing else. */
export const specification: Dialect = {
  refusalOf: () => null,
  readCoupons,
};
