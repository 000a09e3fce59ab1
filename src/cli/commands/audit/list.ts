import { defineList } from '../../client/request.ts';
import { textOption } from '../../command.ts';
import { readInstant } from '../../values.ts';
import { actObject, type AuditEntryObject } from '../../../wire/audit.ts';
import { type Cell, instant, whole } from '../../format.ts';

export const auditPath = '/admin/v1/audit';

export function auditFields({
  id,
  at,
  actor,
  act: what,
  subject,
  detail,
}: AuditEntryObject): Record<string, Cell> {
  return { id, at: instant(at), actor, act: what, subject: whole(subject), detail: detail || null };
}

export const command = defineList({
  command: 'list',
  describe: 'List recorded acts, the latest first',
  builder: {
    since: textOption('Only from this time on: a datetime, a date, or how long ago, such as 24h'),
    until: textOption('Only before this time'),
    actor: textOption('Only by this actor, such as token:ID'),
    act: textOption('Only of this kind, such as purchase.refund'),
    subject: textOption('Only on this account, product, purchase, token …'),
  },
  examples: [['latchkey audit list --act purchase.refund --since 7d', 'refunds of the last seven days']],
  list: { path: auditPath, member: 'acts', item: actObject, row: auditFields },
  query: ({ since, until, actor, act: what, subject }) => ({
    since: readInstant('since', since, 'before'),
    until: readInstant('until', until, 'before'),
    actor,
    act: what,
    subject,
  }),
});
