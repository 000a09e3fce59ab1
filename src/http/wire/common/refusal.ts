import { z } from 'zod';

/** How a store says no that has no problems (RFC 9457). */
export type RefusalObject = { data: readonly never[]; error: true; message: string };

export const refusalObject: z.ZodType<RefusalObject> = z
  .object({ data: z.array(z.never()).readonly(), error: z.literal(true), message: z.string() })
  .meta({ id: 'Refusal' });

export function presentRefusal(message: string): RefusalObject {
  return { data: [], error: true, message };
}
