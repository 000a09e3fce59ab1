import type { ListedLicenseObject } from '../../../../../wire/license.ts';
import { ProductName, useDaemon } from '../../daemon.tsx';
import { count } from '../../format.ts';
import type { PageProps } from '../../page-props.ts';
import { productFilter } from '../../parts/filter.tsx';
import { ListPage, type List } from '../../parts/list.tsx';
import { Badge } from '../../parts/notice.tsx';
import type { Column } from '../../parts/table.tsx';
import { Day, Time } from '../../parts/time.tsx';
import { hrefTo } from '../../router.ts';
import { useSession } from '../../session.ts';
import { sell } from '../selling/sell.tsx';
import { FreshnessBadge, LicenseLink, StateBadge } from './badges.tsx';
import { License } from './license.tsx';

/** Licenses: the search, and with a key in the path one license. */
export function Licenses({ route: { path, query } }: PageProps) {
  const [, licenseKey] = path;
  const { role, products } = useDaemon();
  const isAdmin = useSession()?.admin === true;
  if (licenseKey !== undefined) return <License licenseKey={licenseKey} />;
  const add = (products ?? []).length > 0 ? sell(products ?? []) : null;
  const list = role === 'authority' ? { ...sold, add } : known;
  return <ListPage list={searched(list, { search: query.get('search') ?? '', isAdmin })} query={query} />;
}

const filters: List<ListedLicenseObject>['filters'] = [
  { name: 'search', label: 'Part of a license key or of an e-mail address', kind: 'live' },
  {
    name: 'enabled',
    label: 'State',
    kind: 'links',
    choices: [
      ['', 'all'],
      ['true', 'enabled'],
      ['false', 'disabled'],
    ],
  },
  productFilter,
];

const columns: readonly Column<ListedLicenseObject>[] = [
  {
    name: 'License',
    cell: ({ license_key: key }) => <LicenseLink to={key} />,
    below: ({ buyer_email: email }) => email,
    keepsBelow: true,
  },
  { name: 'Product', cell: ({ product_link: key }) => <ProductName of={key} /> },
  {
    name: 'State',
    place: 'side',
    cell: (listed) => <StateBadge license={listed} state={listed.state} />,
    below: ({ state, status, expires_at: end }) => {
      if ((state !== 'enabled' && state !== 'ended') || typeof end !== 'string') return null;
      return status === 'active' ? (
        <>
          until <Day at={end} />
        </>
      ) : (
        <>
          {state === 'enabled' && 'ended '}
          <Time at={end} />
        </>
      );
    },
  },
];

/** The licenses of an authority. */
const sold: List<ListedLicenseObject> = {
  title: 'Licenses',
  path: ['licenses'],
  from: ['/admin/v1/licenses', 'licenses', 25],
  command: 'latchkey license list',
  filters,
  caption: 'Licenses',
  noMatch: 'No license',
  empty: (
    <>
      Nothing was sold yet. <a href={hrefTo(['products'])}>Add a product</a>, then{' '}
      <a href={hrefTo(['purchases'])}>sell the first license</a>.
    </>
  ),
  keyOf: ({ license_key: key }) => key,
  columns: [
    ...columns,
    { name: 'Uses', kind: 'number', cell: ({ uses }) => count(uses) },
    { name: 'Sold', place: 'wide', cell: ({ date }) => <Time at={date} /> },
  ],
};

/** The licenses that an agent has stored. */
const known: List<ListedLicenseObject> = {
  ...sold,
  caption: 'Licenses that this machine knows',
  noMatch: 'No license that this machine knows',
  empty: 'No license is known here yet. A license appears when your software asks for it.',
  columns: [
    ...columns,
    {
      name: 'Freshness',
      cell: ({ freshness }) => freshness !== null && <FreshnessBadge freshness={freshness} />,
      below: ({ confirmed_at: at }) => at !== null && <Time at={at} />,
    },
    {
      name: 'Uses',
      kind: 'number',
      cell: ({ uses }) => count(uses),
      below: ({ pending }) => (pending ?? 0) > 0 && <Badge tone="warn">{count(pending ?? 0)} waiting</Badge>,
    },
  ],
};

/** The list with the text that is searched. */
function searched(
  list: List<ListedLicenseObject>,
  { search, isAdmin }: { search: string; isAdmin: boolean },
): List<ListedLicenseObject> {
  if (search === '') return { ...list, noMatch: <>{list.noMatch} fits this filter.</> };
  return {
    ...list,
    caption: `${list.caption} that match “${search}”`,
    noMatch: (
      <>
        {list.noMatch} has “{search}” in its key or in the e-mail address of its buyer.
        {!isAdmin && ' A session that only reads searches what it sees of a key, its end, or a whole key.'}
      </>
    ),
  };
}
