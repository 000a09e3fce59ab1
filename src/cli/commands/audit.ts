import { z } from 'zod';
import { defineRequest } from '../client/ask.ts';
import { defineFilteredList } from '../client/list.ts';
import { type Command, operand, textOption } from '../command.ts';
import { type Cell, formatFields, instant, whole } from '../format.ts';
import { readInstant } from '../instant.ts';

const path = '/admin/v1/audit';

const act = z.object({
  id: z.int(),
  at: z.string(),
  actor: z.string(),
  act: z.string(),
  subject: z.string(),
  detail: z.string(),
});

/** `audit list`. */
export const listAudit: Command = defineFilteredList(
  { path, member: 'acts', item: act, row: actFields },
  {
    options: (syntax) =>
      syntax
        .options({
          since: textOption('Only from this time on: a datetime, a date, or how long ago, such as 24h'),
          until: textOption('Only before this time'),
          actor: textOption('Only by this actor, such as token:ID'),
          act: textOption('Only of this kind, such as purchase.refund'),
          subject: textOption('Only on this account, product, purchase, token …'),
        })
        .example('latchkey audit list --act purchase.refund --since 7d', 'refunds of the last seven days'),
    query: ({ since, until, ...same }) => ({
      since: readInstant('since', since, 'before'),
      until: readInstant('until', until, 'before'),
      actor: same.actor,
      act: same.act,
      subject: same.subject,
    }),
  },
);

/** `audit show`. */
export const showAct: Command = defineRequest(
  (syntax) =>
    syntax
      .positional('id', operand('Number of the act, as in audit list', 'act'))
      .example('latchkey audit show 17', 'who did it, when, and to what'),
  ({ id }) => ({ path: `${path}/${encodeURIComponent(id)}` }),
  { schema: act, show: (shown) => formatFields(actFields(shown)) },
);

function actFields({ id, at, actor, act: what, subject, detail }: z.infer<typeof act>): Record<string, Cell> {
  return { id, at: instant(at), actor, act: what, subject: whole(subject), detail: detail || null };
}
