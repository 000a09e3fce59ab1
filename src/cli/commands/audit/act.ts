import { type Cell, instant, whole } from '../../format.ts';
import type { ActObject } from '../../../wire/audit.ts';

export const auditPath = '/admin/v1/audit';

export function actFields({ id, at, actor, act: what, subject, detail }: ActObject): Record<string, Cell> {
  return { id, at: instant(at), actor, act: what, subject: whole(subject), detail: detail || null };
}
