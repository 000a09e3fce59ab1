import type { AuditEntryObject } from '../../../../wire/access.ts';
import { withQuery } from '../api.ts';
import type { PageProps } from '../page-props.ts';
import { Field } from '../parts/action.tsx';
import { quoted, SameCommand } from '../parts/command.tsx';
import { FilterForm } from '../parts/filter.tsx';
import { Heading } from '../parts/page.tsx';
import { ListTable, type Column } from '../parts/table.tsx';
import { ExactTime } from '../parts/time.tsx';
import { hrefTo } from '../router.ts';
import { usePages } from '../use-data.ts';

const names = ['act', 'actor', 'subject', 'since', 'until'] as const;

type Texts = [act: string, actor: string, subject: string, since: string, until: string];

/** What people changed, the latest first. */
export function Audit({ route: { query } }: PageProps) {
  const [act, actor, subject, since, until] = names.map((name) => query.get(name) ?? '') as Texts;
  const filter = { act, actor, subject, since, until };
  const path = withQuery('/admin/v1/audit', {
    ...filter,
    since: instantOf(since, 0),
    until: instantOf(until, 1),
    limit: '50',
  });
  const pages = usePages<AuditEntryObject>(path, 'acts');
  return (
    <>
      <Heading title="Audit">
        <button type="button" onClick={pages.reload}>
          Read again
        </button>
      </Heading>
      <FilterForm path={['audit']} query={query} names={names}>
        <Field label="Act" name="act" value={act} example="purchase.refund" />
        <Field label="Actor" name="actor" value={actor} example="token:ID" />
        <Field label="Subject" name="subject" value={subject} example="purchase, product …" />
        <Field label="From" name="since" type="date" value={since} />
        <Field label="To" name="until" type="date" value={until} />
      </FilterForm>
      <ListTable
        caption="What people changed, the latest first"
        pages={pages}
        columns={columns}
        keyOf={({ id }) => id}
        empty={
          names.some((name) => query.has(name))
            ? 'Nothing fits this filter.'
            : 'Nothing was changed by a person yet. Every change by a command, by this page or by a route of /admin is recorded here.'
        }
      />
      <SameCommand line={commandOf(filter)} />
    </>
  );
}

function commandOf(filter: Readonly<Record<string, string>>): string {
  const options = Object.entries(filter).filter(([, value]) => value !== '');
  return [
    'latchkey audit list',
    ...options.map(([name, value]) => `--${name} ${quoted(optionOf(name, value))}`),
  ].join(' ');
}

function optionOf(name: string, value: string): string {
  if (name === 'since') return instantOf(value, 0) ?? value;
  return name === 'until' ? (instantOf(value, 1) ?? value) : value;
}

/** The start of a day in the time zone of the browser, `later` days after it. Null unless it is a date. */
function instantOf(date: string, later: number): string | null {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) return null;
  const at = new Date(`${date}T00:00:00`);
  at.setDate(at.getDate() + later);
  return Number.isNaN(at.getTime()) ? null : at.toISOString();
}

function only(name: (typeof names)[number], value: string, text = value) {
  return (
    <a href={hrefTo(['audit'], { [name]: value })} title={`Only ${name} ${value}`}>
      {text}
    </a>
  );
}

/** The first part of the path of the page about a subject, by the first part of its act. */
const pagesOf: Readonly<Record<string, string>> = {
  outbox: 'outbox',
  product: 'products',
  coupon: 'coupons',
};

function Subject({ act, subject }: AuditEntryObject) {
  const page = pagesOf[act.split('.', 1)[0] ?? ''];
  // An import is not about one coupon, and a deleted coupon has no page.
  const hasPage = page !== undefined && !/\.(?:import|delete)$/.test(act);
  return (
    <>
      {only('subject', subject)}
      {hasPage && (
        <>
          {' '}
          <a class="quiet" href={hrefTo([page, subject])} aria-label={`Open ${subject}`}>
            open
          </a>
        </>
      )}
    </>
  );
}

const columns: readonly Column<AuditEntryObject>[] = [
  { name: 'When', cell: ({ at }) => <ExactTime at={at} /> },
  { name: 'Act', cell: ({ act }) => only('act', act) },
  { name: 'Subject', cell: Subject },
  { name: 'Detail', cell: ({ detail }) => detail },
  { name: 'Actor', cell: ({ actor }) => only('actor', actor) },
];
