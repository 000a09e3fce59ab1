import { z } from 'zod';
import { oneOf } from './common/kind.ts';
import { parameters, type ParameterSet } from './common/parameters.ts';

/** The body of `/livez` and `/readyz`. */
export type HealthObject = { status: 'ok' | 'unavailable'; reasons: readonly string[] };

export const healthObject: z.ZodType<HealthObject> = z
  .object({
    status: z.enum(['ok', 'unavailable']),
    reasons: z.array(z.string()),
  })
  .meta({ id: 'Health' });

/** `GET /readyz`; `fresh` also asks for an upstream that answers. */
export const readinessQuery: ParameterSet<{ require?: 'fresh' | undefined }> = parameters({
  require: oneOf(['fresh']).optional(),
});
