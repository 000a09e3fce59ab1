import { z } from 'zod';
import { formatDatetime } from '../domain/time.ts';
import type { RecordedAuditEntry } from '../service/tables.ts';
import { datetime, text, instant, parameters } from './parameters.ts';
import { pageShape } from './page.ts';

export const actObject = z
  .object({
    id: z.int(),
    at: instant,
    actor: z.string(),
    act: z.string(),
    subject: z.string(),
    detail: z.string(),
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
  actor: textFilter.optional(),
  act: textFilter.optional(),
  subject: textFilter.optional(),
  ...pageShape('acts'),
});

export function serializeAuditEntry({ at, ...same }: RecordedAuditEntry): AuditEntryObject {
  return { ...same, at: formatDatetime(at) };
}
