import { z } from 'zod';

const envelopes = new WeakMap<z.ZodType, z.ZodType>();

/** Wraps a schema in the single top-level member `data` (specification 4); named after what it holds. */
export function enveloped(data: z.ZodType): z.ZodType {
  const id = data.meta()?.id;
  const envelope =
    envelopes.get(data) ?? z.object({ data }).meta(id === undefined ? {} : { id: `${id}Envelope` });
  envelopes.set(data, envelope);
  return envelope;
}
