import { z } from 'zod';
import { formatDatetime } from '../domain/datetime.ts';
import type { Page } from '../domain/page.ts';
import type { AuditFilter, RecordedAct } from '../service/access/tables.ts';
import { datetime, text } from './types.ts';
import { pageShape } from './page.ts';
import { parameters, type ParameterSet } from './parameters.ts';

export type ActObject = {
  id: number;
  at: string;
  actor: string;
  act: string;
  subject: string;
  detail: string;
};

export const actObject: z.ZodType<ActObject> = z
  .object({
    id: z.int(),
    at: z.iso.datetime({ offset: true }),
    actor: z.string(),
    act: z.string(),
    subject: z.string(),
    detail: z.string(),
  })
  .meta({ id: 'Act' });

export const actList: z.ZodType<{ acts: ActObject[] }> = z
  .object({ acts: z.array(actObject) })
  .meta({ id: 'ActList' });

/** Fits into the headers of a request also when each character takes 12 bytes. */
const soughtText = text(500);

/** `GET /admin/v1/audit`. */
export const actQuery: ParameterSet<AuditFilter & Page> = parameters({
  since: datetime.optional(),
  until: datetime.optional(),
  actor: soughtText.optional(),
  act: soughtText.optional(),
  subject: soughtText.optional(),
  ...pageShape('acts'),
});

export function serializeAct({ at, ...same }: RecordedAct): ActObject {
  return { ...same, at: formatDatetime(at) };
}
