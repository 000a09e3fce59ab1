import type { Page } from '../../service/tables.ts';
import { integer } from './kind.ts';
import { parameters, type ParameterSet } from './parameters.ts';

/** The parameters of every list (specification 4.2 and 8). */
export const pageShape: { limit: ReturnType<typeof integer>; offset: ReturnType<typeof integer> } = {
  limit: integer(1, 100).default(10),
  offset: integer(0).default(0),
};

export const pageQuery: ParameterSet<Page> = parameters(pageShape);
