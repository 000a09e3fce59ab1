import type { z } from 'zod';
import type { Page } from '../../../domain/page.ts';
import { integer, orDefault } from './kind.ts';
import { parameters, type ParameterSet } from './parameters.ts';

/** The parameters of every list (specification 4.2 and 8). */
export const pageShape: { limit: z.ZodType<number>; offset: z.ZodType<number> } = {
  limit: orDefault(integer(1, 100), 10),
  offset: orDefault(integer(0), 0),
};

export const pageQuery: ParameterSet<Page> = parameters(pageShape);
