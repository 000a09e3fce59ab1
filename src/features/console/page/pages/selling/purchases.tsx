import type { PurchaseObject } from '../../../../../wire/catalogue.ts';
import { withQuery } from '../../api.ts';
import { count } from '../../format.ts';
import type { PageProps } from '../../page-props.ts';
import { Field } from '../../parts/action.tsx';
import { quoted, SameCommand } from '../../parts/command.tsx';
import { FilterForm } from '../../parts/filter.tsx';
import { Badge } from '../../parts/notice.tsx';
import { Heading } from '../../parts/page.tsx';
import { ListTable, type Column } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { hrefTo } from '../../router.ts';
import { usePages } from '../../use-data.ts';
import { KeyOfCustomer } from '../licenses/badges.tsx';
import { Refund } from '../licenses/license-actions.tsx';
import { ProductChoice, useProducts, type ProductNames } from '../products.tsx';
import { Sell } from './sell.tsx';

const names = ['email', 'since', 'until'] as const;

/** Purchases, the latest first. */
export function Purchases({ route: { query } }: PageProps) {
  const products = useProducts('authority') ?? [];
  const productNames: ProductNames = new Map(products.map(({ product_key: key, name }) => [key, name]));
  const [email = '', since = '', until = ''] = names.map((name) => query.get(name) ?? '');
  const refunded = query.get('refunded') ?? '';
  const product = query.get('product') ?? '';
  const path = withQuery('/admin/v1/purchases', {
    buyer_email: email,
    product_key: product,
    refunded,
    since: since === '' ? '' : `${since}T00:00:00Z`,
    until: until === '' ? '' : `${until}T23:59:59Z`,
    limit: '25',
  });
  const pages = usePages<PurchaseObject>(path, 'purchases');
  const isFiltered = [email, since, until, refunded, product].some((value) => value !== '');
  return (
    <>
      <Heading title="Purchases">
        {products.length > 0 && <Sell products={products} onDone={pages.reload} />}
      </Heading>
      <FilterForm path={['purchases']} query={query} names={names}>
        <Field label="Whole e-mail address" name="email" type="search" value={email} />
        <Field label="From" name="since" type="date" value={since} />
        <Field label="To" name="until" type="date" value={until} />
      </FilterForm>
      <div class="filters">
        <RefundedChoice query={query} refunded={refunded} />
        <ProductChoice names={productNames} path={['purchases']} query={query} />
      </div>
      <ListTable
        caption={pages.total === null ? 'Purchases' : `Purchases, the latest first: ${count(pages.total)}`}
        pages={pages}
        columns={columnsOf(productNames, pages.reload)}
        keyOf={({ purchase_id: id }) => id}
        empty={
          isFiltered ? 'No purchase fits this filter.' : <NothingSold hasProducts={products.length > 0} />
        }
      />
      <SameCommand line={commandOf({ email, since, until, refunded, product })} />
    </>
  );
}

function NothingSold({ hasProducts }: { hasProducts: boolean }) {
  return hasProducts ? (
    <>Nothing was sold yet. “Sell” issues the first license key.</>
  ) : (
    <>
      Nothing was sold yet. <a href={hrefTo(['products'])}>Add a product</a> first.
    </>
  );
}

const refundedChoices = [
  ['', 'all'],
  ['false', 'kept'],
  ['true', 'refunded'],
] as const;

function RefundedChoice({ query, refunded }: { query: URLSearchParams; refunded: string }) {
  return (
    <nav class="choice" aria-label="State">
      {refundedChoices.map(([value, text]) => (
        <a
          key={value}
          href={hrefTo(['purchases'], { ...Object.fromEntries(query), refunded: value })}
          aria-current={refunded === value ? 'true' : undefined}
        >
          {text}
        </a>
      ))}
    </nav>
  );
}

function commandOf(filter: Readonly<Record<string, string>>): string {
  const options = Object.entries(filter)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `--${name} ${quoted(value)}`);
  return ['latchkey purchase list', ...options].join(' ');
}

function columnsOf(productNames: ProductNames, onDone: () => void): readonly Column<PurchaseObject>[] {
  return [
    { name: 'Sold', cell: ({ date }) => <Time at={date} /> },
    {
      name: 'License',
      cell: ({ license }) => (
        <KeyOfCustomer licenseKey={license.license_key} customer={license.buyer_email} />
      ),
    },
    {
      name: 'Product',
      cell: ({ license: { product_link: key } }) => productNames.get(key) ?? key,
    },
    {
      name: 'Refund',
      cell: ({ purchase_id: purchaseId, refunded_at: at, license }) =>
        at === null ? (
          <Refund
            purchaseId={purchaseId}
            licenseKey={license.license_key}
            customer={license.buyer_email}
            isInList
            onDone={onDone}
          />
        ) : (
          <>
            <Badge tone="quiet">refunded</Badge> <Time at={at} />
          </>
        ),
    },
  ];
}
