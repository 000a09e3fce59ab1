import { ProductName, useDaemon } from '../../daemon.tsx';
import type { PurchaseObject } from '../../../../../wire/catalogue.ts';
import type { PageProps } from '../../page-props.ts';
import { dayFilter, productFilter } from '../../parts/filter.tsx';
import { ListPage, type List } from '../../parts/list.tsx';
import { Time } from '../../parts/time.tsx';
import { hrefTo } from '../../router.ts';
import { shownKey } from '../../format.ts';
import { isInGrace, LicenseLink, StateBadge } from '../licenses/badges.tsx';
import { refund } from '../licenses/license-actions.tsx';
import { sell } from './sell.tsx';

/** Purchases, the latest first. */
const purchases: List<PurchaseObject> = {
  title: 'Purchases',
  path: ['purchases'],
  from: ['/admin/v1/purchases', 'purchases', 25],
  command: 'latchkey purchase list',
  filters: [
    { name: 'search', label: 'Part of a license key or of an e-mail address', kind: 'live' },
    dayFilter('since', 'From'),
    dayFilter('until', 'To', { days: 1, seconds: -1 }),
    {
      name: 'refunded',
      label: 'State',
      kind: 'links',
      choices: [
        ['', 'all'],
        ['false', 'paid'],
        ['true', 'refunded'],
      ],
    },
    productFilter,
  ],
  download: 'purchases',
  downloaded: ({ purchase_id: id, date, refunded, refunded_at: refundedAt, license }) => ({
    purchase_id: id,
    date,
    product_key: license.product_link,
    buyer_email: license.buyer_email,
    license_key: shownKey(license.license_key),
    refunded,
    refunded_at: refundedAt,
  }),
  caption: 'Purchases, the latest first',
  empty: <NothingSold />,
  noMatch: 'No purchase fits this filter.',
  keyOf: ({ purchase_id: id }) => id,
  nameOf: ({ license }) => `${license.buyer_email}, ${shownKey(license.license_key)}`,
  columns: [
    { name: 'Sold', cell: ({ date }) => <Time at={date} /> },
    {
      name: 'License',
      place: 'main',
      cell: ({ license }) => <LicenseLink to={license.license_key} />,
      below: ({ license }) => license.buyer_email,
      keepsBelow: true,
    },
    { name: 'Product', cell: ({ license }) => <ProductName of={license.product_link} /> },
    {
      name: 'State',
      place: 'side',
      cell: State,
      below: since,
    },
  ],
  actions: ({ purchase_id: id, refunded, license }) => (refunded ? [] : [refund(id, license)]),
};

function State({ refunded, license }: PurchaseObject) {
  if (refunded) return <StateBadge license={license} state="refunded" />;
  if (license.status === 'expired') return <StateBadge license={license} state="ended" />;
  return isInGrace(license, 'enabled') ? <StateBadge license={license} state="enabled" /> : <>paid</>;
}

/** Since when it is in this state. */
function since({ refunded_at: refundedAt, license: { status, expires_at: end = null } }: PurchaseObject) {
  const at = refundedAt ?? (status === 'expired' ? end : null);
  return at !== null && <Time at={at} />;
}

export function Purchases({ route: { query } }: PageProps) {
  const products = useDaemon().products ?? [];
  return <ListPage list={{ ...purchases, add: products.length > 0 ? sell(products) : null }} query={query} />;
}

function NothingSold() {
  const { products } = useDaemon();
  return (products ?? []).length > 0 ? (
    <>Nothing was sold yet. “Sell a license” issues the first license key.</>
  ) : (
    <>
      Nothing was sold yet. <a href={hrefTo(['products'])}>Add a product</a> first.
    </>
  );
}
