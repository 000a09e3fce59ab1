import { z } from 'zod';
import { datetime, text, instant, parameters } from './parameters.ts';
import { pageShape } from './page.ts';
import { serializerOf } from './server/shape.ts';

export const actObject = z
  .object({
    id: z.int(),
    actor: z.string(),
    act: z.string(),
    subject: z.string(),
    subject_name: z
      .string()
      .optional()
      .describe('The customer of a purchase, the name of a product or an account, the label of a token.'),
    detail: z.string(),
    at: instant,
  })
  .meta({ id: 'Act' });

export type AuditEntryObject = z.infer<typeof actObject>;

export const actList = z.object({ acts: z.array(actObject) }).meta({ id: 'ActList' });

/** Fits into the headers of a request even if each character takes 12 bytes. */
const textFilter = text(500);

/** `GET /admin/v1/audit`. */
export const actQuery = parameters({
  since: datetime.optional(),
  until: datetime.optional(),
  actor: textFilter.optional().describe('`console:*`: all that begin with `console:`.'),
  act: textFilter.optional().describe('`purchase.*`: all that begin with `purchase.`.'),
  subject: textFilter.optional(),
  ...pageShape('acts'),
});

export const serializeAuditEntry = serializerOf(actObject);
