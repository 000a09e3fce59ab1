import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { OverviewObject } from '../../../wire/console.ts';
import type { ListedLicenseObject } from '../../../../../wire/license.ts';
import { withQuery } from '../../api.ts';
import { count } from '../../format.ts';
import type { PageProps } from '../../page-props.ts';
import { quoted, SameCommand } from '../../parts/command.tsx';
import { Badge } from '../../parts/notice.tsx';
import { Heading } from '../../parts/page.tsx';
import { ListTable, type Column } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { hrefTo } from '../../router.ts';
import { usePages } from '../../use-data.ts';
import { ProductChoice, useProductNames, type ProductNames } from '../products.tsx';
import { FreshnessBadge, KeyOfCustomer, StateBadge } from './badges.tsx';
import { License } from './license.tsx';

/** Licenses: the search, and with a key in the path one license. */
export function Licenses({ route, overview }: PageProps) {
  const [, licenseKey] = route.path;
  const role = overview.data?.role ?? 'authority';
  if (licenseKey !== undefined) return <License licenseKey={licenseKey} role={role} />;
  return <Search query={route.query} role={role} />;
}

type Role = OverviewObject['role'];

function Search({ query, role }: { query: URLSearchParams; role: Role }) {
  const search = query.get('search') ?? '';
  const filter = { search, enabled: query.get('enabled') ?? '', product: query.get('product') ?? '' };
  const path = withQuery('/admin/v1/licenses', {
    search,
    enabled: filter.enabled,
    product_key: filter.product,
    limit: '25',
  });
  const pages = usePages<ListedLicenseObject>(path, 'licenses');
  const names = useProductNames(role);
  const isFiltered = search !== '' || filter.enabled !== '' || filter.product !== '';
  return (
    <>
      <Heading title="Licenses" />
      <SearchField search={search} query={query} />
      <div class="filters">
        <nav class="choice" aria-label="State">
          {states.map(([enabled, text]) => (
            <a
              key={enabled}
              href={hrefTo(['licenses'], { ...Object.fromEntries(query), enabled })}
              aria-current={filter.enabled === enabled ? 'true' : undefined}
            >
              {text}
            </a>
          ))}
        </nav>
        <ProductChoice names={names} path={['licenses']} query={query} />
      </div>
      <ListTable
        caption={captionOf(role, search, pages.total)}
        pages={pages}
        columns={role === 'authority' ? soldColumns(names) : cachedColumns}
        keyOf={(license) => license.license_key}
        empty={isFiltered ? nothingFound(role, search) : nothingYet(role)}
      />
      <SameCommand line={commandOf(filter)} />
    </>
  );
}

const states = [
  ['', 'all'],
  ['true', 'enabled'],
  ['false', 'disabled'],
] as const;

const searchAfterMs = 200;

/** Searches while a person types. The text is kept in the address, without an entry in the history for each letter. */
function SearchField({ search, query }: { search: string; query: URLSearchParams }) {
  const [text, setText] = useState(search);
  const timer = useRef<number | undefined>(undefined);
  const applied = useRef(search);
  useLayoutEffect(() => {
    // A link changed the address. A search of this field is not written back: the person may have typed on.
    if (search !== applied.current) setText(search);
    applied.current = search;
  }, [search]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const apply = (value: string): void => {
    clearTimeout(timer.current);
    applied.current = value.trim();
    location.replace(hrefTo(['licenses'], { ...Object.fromEntries(query), search: applied.current }));
  };
  const onInput = (event: Event): void => {
    const { value } = event.currentTarget as HTMLInputElement;
    setText(value);
    clearTimeout(timer.current);
    // One letter finds too much to be of use: it is searched when the person presses Enter.
    if (value.trim().length === 1) return;
    timer.current = window.setTimeout(() => apply(value), searchAfterMs);
  };
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    apply(text);
  };
  return (
    <form role="search" class="search" onSubmit={onSubmit}>
      <label for="license-search">License key or e-mail address, or how it begins</label>
      <input
        id="license-search"
        type="search"
        name="search"
        value={text}
        onInput={onInput}
        autocomplete="off"
        spellcheck={false}
      />
    </form>
  );
}

function captionOf(role: Role, search: string, total: number | null): string {
  const what = role === 'authority' ? 'Licenses' : 'Licenses that this machine knows';
  const found = search === '' ? what : `${what} that match “${search}”`;
  return total === null ? found : `${found}: ${count(total)}`;
}

function nothingFound(role: Role, search: string) {
  const where = role === 'authority' ? 'No license' : 'No license that this machine knows';
  if (search === '') return `${where} fits this filter.`;
  return (
    <>
      {where} has a key or an e-mail address that begins with “{search}”. Type the beginning as it was sold:
      the middle of a key is not searched.
    </>
  );
}

function nothingYet(role: Role) {
  if (role !== 'authority')
    return 'No license is known here yet. A license appears when your software asks for it.';
  return (
    <>
      Nothing was sold yet. <a href={hrefTo(['products'])}>Add a product</a>, then{' '}
      <a href={hrefTo(['purchases'])}>sell the first license</a>.
    </>
  );
}

function commandOf(filter: { search: string; enabled: string; product: string }): string {
  const options = Object.entries(filter)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `--${name} ${quoted(value)}`);
  return ['latchkey license list', ...options].join(' ');
}

type Listed = ListedLicenseObject;

const keyColumn: Column<Listed> = {
  name: 'License',
  cell: ({ license_key: key, buyer_email: email }) => <KeyOfCustomer licenseKey={key} customer={email} />,
};

const stateColumn: Column<Listed> = { name: 'State', cell: ({ state }) => <StateBadge state={state} /> };
const usesColumn: Column<Listed> = { name: 'Uses', kind: 'number', cell: ({ uses }) => count(uses) };

function soldColumns(names: ProductNames): readonly Column<Listed>[] {
  return [
    keyColumn,
    { name: 'Product', cell: ({ product_link: key }) => names.get(key) ?? key },
    stateColumn,
    usesColumn,
    { name: 'Sold', cell: ({ date }) => <Time at={date} /> },
  ];
}

const cachedColumns: readonly Column<Listed>[] = [
  keyColumn,
  { name: 'Product', cell: ({ product_link: product }) => product },
  stateColumn,
  {
    name: 'Freshness',
    cell: ({ freshness, confirmed_at: at }) => (
      <>
        {freshness !== null && <FreshnessBadge freshness={freshness} />}
        <br />
        {at !== null && (
          <span class="quiet">
            <Time at={at} />
          </span>
        )}
      </>
    ),
  },
  {
    name: 'Uses',
    kind: 'number',
    cell: ({ uses, pending }) => (
      <>
        {count(uses)}
        {pending !== null && pending > 0 && (
          <>
            <br />
            <Badge tone="warn">{count(pending)} waiting</Badge>
          </>
        )}
      </>
    ),
  },
];
