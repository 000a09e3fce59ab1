import type { ComponentChildren } from 'preact';
import { useDaemon, Who } from '../daemon.tsx';
import type { AuditEntryObject } from '../../../../wire/access.ts';
import type { PageProps } from '../page-props.ts';
import { dayFilter } from '../parts/filter.tsx';
import { ListPage, type List } from '../parts/list.tsx';
import { ExactTime } from '../parts/time.tsx';
import { hrefTo } from '../router.ts';

/** What an act can be about, as its name begins. */
const things = [
  'account',
  'activation',
  'agent',
  'collection',
  'console',
  'coupon',
  'license',
  'outbox',
  'process',
  'product',
  'purchase',
  'redemption',
  'store',
  'sync',
  'token',
  'webhook',
];

/** What people changed, the latest first. */
const audit: List<AuditEntryObject> = {
  title: 'Audit',
  canReadAgain: true,
  download: 'audit',
  path: ['audit'],
  from: ['/admin/v1/audit', 'acts', 50],
  command: 'latchkey audit list',
  filters: [
    {
      name: 'actor',
      label: 'Person',
      kind: 'choice',
      options: ({ tokenLabels }) => [
        ['', 'All people'],
        ['console:*', 'People in the console'],
        ...[...tokenLabels].map(([id, label]) => [`token:${id}`, `The token ${label}`] as const),
      ],
    },
    {
      name: 'act',
      label: 'Thing',
      kind: 'choice',
      options: () => [['', 'All things'], ...things.map((name) => [`${name}.*`, name] as const)],
    },
    { name: 'subject', label: 'Subject', kind: 'text', example: 'purchase, product …' },
    dayFilter('since', 'From'),
    dayFilter('until', 'To', { days: 1 }),
  ],
  caption: 'What people changed, the latest first',
  empty:
    'Nothing was changed by a person yet. Every change by a command, by this page or by a route of /admin is recorded here.',
  noMatch: 'Nothing fits this filter.',
  keyOf: ({ id }) => id,
  columns: [
    { name: 'When', place: 'side', cell: ({ at }) => <ExactTime at={at} /> },
    { name: 'Act', place: 'main', cell: ({ act }) => only('act', act) },
    { name: 'Subject', place: 'below', cell: Subject, below: Detail },
    { name: 'Actor', cell: ({ actor }) => only('actor', actor, <Who is={actor} />) },
  ],
};

export const Audit = ({ route: { query } }: PageProps) => <ListPage list={audit} query={query} />;

function only(name: 'act' | 'actor' | 'subject', value: string, text: ComponentChildren = value) {
  return (
    <a class="only" href={hrefTo(['audit'], { [name]: value })} title={`Only ${name} ${value}`}>
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

/** A detail names products by their keys. */
function Detail({ detail }: AuditEntryObject) {
  const { productNames } = useDaemon();
  return <>{detail.replace(/(?<=\bproduct )[^\s,]+/, (key) => productNames.get(key) ?? key)}</>;
}

function Subject({ act, subject, subject_name: name }: AuditEntryObject) {
  const page = pagesOf[act.split('.', 1)[0] ?? ''];
  // An import is not about one coupon, and a deleted coupon has no page.
  const hasPage = page !== undefined && !/\.(?:import|delete)$/.test(act);
  return (
    <>
      {only('subject', subject, name ?? subject)}
      {hasPage && (
        <>
          {' '}
          <a class="quiet" href={hrefTo([page, subject])} aria-label={`Open ${name ?? subject}`}>
            open
          </a>
        </>
      )}
    </>
  );
}
