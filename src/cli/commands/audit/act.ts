import { z } from 'zod';
import { type Cell, instant, whole } from '../../format.ts';

export const auditPath = '/admin/v1/audit';

/** An event of the audit log. */
export const act = z.object({
  id: z.int(),
  at: z.string(),
  actor: z.string(),
  act: z.string(),
  subject: z.string(),
  detail: z.string(),
});

export function actFields({
  id,
  at,
  actor,
  act: what,
  subject,
  detail,
}: z.infer<typeof act>): Record<string, Cell> {
  return { id, at: instant(at), actor, act: what, subject: whole(subject), detail: detail || null };
}
