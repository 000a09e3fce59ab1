import { z } from 'zod';

/** Every success of the specification's interface has a single top-level member (specification 4). */
export function enveloped(data: z.ZodType): z.ZodType {
  return z.object({ data });
}
