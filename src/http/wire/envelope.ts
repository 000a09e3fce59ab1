import { z } from 'zod';

/** Wraps a schema in the single top-level member `data` (specification 4). */
export function enveloped(data: z.ZodType): z.ZodType {
  return z.object({ data });
}
