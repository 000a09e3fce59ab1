import { auditEntryObject, type AuditEntryObject } from '../../wire/access.ts';
import { defineList, defineRequest, pathOf } from '../client/request.ts';
import { positional, textOption } from '../command.ts';
import { type Cell, formatFields, instant, whole } from '../format.ts';
import { readInstant } from '../values.ts';

const auditPath = '/admin/v1/audit';

export const commands = [
  defineList({
    command: 'list',
    describe: 'List recorded acts, the latest first',
    builder: {
      since: textOption('Only from this time on: a datetime, a date, or how long ago, such as 24h'),
      until: textOption('Only before this time'),
      actor: textOption('Only by this actor, such as token:ID, or console:* for all that begin so'),
      act: textOption('Only of this kind, such as purchase.refund, or purchase.*'),
      subject: textOption('Only on this account, product, purchase, token …'),
    },
    examples: [['latchkey audit list --act purchase.refund --since 7d', 'refunds of the last seven days']],
    list: { path: auditPath, member: 'acts', item: auditEntryObject, row: auditFields },
    query: ({ since, until, actor, act: what, subject }) => ({
      since: readInstant('since', since, 'before'),
      until: readInstant('until', until, 'before'),
      actor,
      act: what,
      subject,
    }),
  }),
  defineRequest({
    command: 'show <id>',
    describe: 'Show one recorded act',
    builder: { id: positional('Number of the act, as in audit list', 'act') },
    examples: [['latchkey audit show 17', 'who did it, when, and to what']],
    request: ({ id }) => ({ path: pathOf(auditPath, id) }),
    view: { schema: auditEntryObject, show: (act) => formatFields(auditFields(act)) },
  }),
];

function auditFields({ id, at, actor, act: what, subject, detail }: AuditEntryObject): Record<string, Cell> {
  return { id, at: instant(at), actor, act: what, subject: whole(subject), detail: detail || null };
}
