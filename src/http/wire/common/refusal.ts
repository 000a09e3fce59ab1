import { z } from 'zod';

/**
 * How a store says no that has no problems (RFC 9457). The store itself adds `data: []`, which is true in JavaScript:
 * a program that asks only whether there is `data` would take each refusal for a valid key.
 */
export type RefusalObject = { error: true; message: string };

export const refusalObject: z.ZodType<RefusalObject> = z
  .object({ error: z.literal(true), message: z.string() })
  .meta({ id: 'Refusal' });

export function presentRefusal(message: string): RefusalObject {
  return { error: true, message };
}
