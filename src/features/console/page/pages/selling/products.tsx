import type { ProductObject } from '../../../../../wire/catalogue.ts';
import { send } from '../../api.ts';
import { count, counted, duration } from '../../format.ts';
import type { PageProps } from '../../page-props.ts';
import { Action, Field, fieldText } from '../../parts/action.tsx';
import { changedOptions, changedParameters, type Texts } from '../../parts/changes.ts';
import { quoted, SameCommand } from '../../parts/command.tsx';
import { ListPage, type List } from '../../parts/list.tsx';
import { Badge, Notice } from '../../parts/notice.tsx';
import { Card, Fields, Heading } from '../../parts/page.tsx';
import { Secret } from '../../parts/secret.tsx';
import { hrefTo } from '../../router.ts';
import { useData } from '../../use-data.ts';
import { rotate } from '../../parts/rotate.tsx';
import { entitlements, EntitlementsField } from '../licenses/terms.tsx';
import { sell } from './sell.tsx';

const daySeconds = 86_400;

/** What is sold, and on how many devices a license works. */
export function Products({ route }: PageProps) {
  const [, productKey] = route.path;
  if (productKey !== undefined) return <ProductPage productKey={productKey} />;
  return <ListPage list={products} query={route.query} />;
}

const products: List<ProductObject> = {
  title: 'Products',
  path: ['products'],
  from: ['/admin/v1/products', 'products', 50],
  command: 'latchkey product list',
  filters: [
    {
      name: 'archived',
      label: 'State',
      kind: 'links',
      choices: [
        ['', 'all'],
        ['false', 'on sale'],
        ['true', 'archived'],
      ],
    },
  ],
  caption: 'Products',
  empty:
    'There is no product yet. Add the first one: its secret goes into the software that verifies licenses.',
  noMatch: 'No product fits this filter.',
  keyOf: ({ product_key: key }) => key,
  columns: [
    {
      name: 'Product',
      cell: ({ product_key: key, name }) => <a href={hrefTo(['products', key])}>{name}</a>,
    },
    { name: 'Key', cell: ({ product_key: key }) => <code>{key}</code> },
    { name: 'Price', cell: ({ recurring }) => (recurring ? 'recurring' : 'once') },
    { name: 'Seats', kind: 'number', cell: ({ seats }) => seatsText(seats) },
    { name: 'State', place: 'side', cell: ProductState },
  ],
  add: {
    label: 'Add a product',
    title: 'Add a product',
    consequence:
      'The product gets a key and a secret. The secret is shown once: your software sends it with every request.',
    command: (form) =>
      [
        `latchkey product add ${quoted(fieldText(form, 'name') || 'NAME')}`,
        ...changedOptions(form, productTerms, { recurring: 'false' }),
      ].join(' '),
    run: async (form) => {
      const { product_key: key, secret } = await send<ProductObject>('POST', '/admin/v1/products', {
        name: fieldText(form, 'name'),
        ...changedParameters(form, productTerms),
      });
      return (
        <>
          <Secret name="secret of the product" secret={secret} />
          <p>
            <a href={hrefTo(['products', key])}>Show the product</a>
          </p>
        </>
      );
    },
    children: (
      <>
        <Field label="Name" name="name" isRequired />
        <ProductTermFields before={{ recurring: 'false' }} />
      </>
    ),
  },
};

function ProductState({ archived }: ProductObject) {
  return <Badge tone={archived ? 'quiet' : 'ok'}>{archived ? 'archived' : 'on sale'}</Badge>;
}

function seatsText(seats: number | null): string {
  return seats === null ? 'any number' : count(seats);
}

/** The fields of what a product says about its licenses. The grace is in days. */
const productTerms = {
  recurring: { option: '--recurring' },
  seats: { option: '--seats', word: (text: string) => text || 'unlimited' },
  license_for: { option: '--license-for' },
  entitlements,
  expiry_grace_s: {
    option: '--expiry-grace',
    word: (days: string) => `${days || 0}d`,
    value: (days: string) => Number(days) * daySeconds,
  },
} as const;

function ProductTermFields({ before }: { before: Texts<keyof typeof productTerms> }) {
  return (
    <>
      <Field
        label="Price"
        name="recurring"
        value={before.recurring ?? ''}
        options={[
          ['false', 'Paid once'],
          ['true', 'Recurring: coupons do not apply'],
        ]}
      />
      <Field
        label="Seats"
        name="seats"
        value={before.seats ?? ''}
        help="On how many devices a license works at the same time; empty: any number."
      />
      <Field
        label="A license is valid for"
        name="license_for"
        value={before.license_for ?? ''}
        help="Such as 30d, 6mo or 1y; empty: for ever."
      />
      <Field
        label="Grace after its end, in days"
        name="expiry_grace_s"
        value={before.expiry_grace_s ?? ''}
        pattern="(?:[1-3]?[0-9]?[0-9]|400)(?:\.[0-9]+)?"
        help="How long it is answered as valid after its end: up to 400 days; empty: not at all."
      />
      <EntitlementsField value={before.entitlements ?? ''} />
    </>
  );
}

function ProductPage({ productKey }: { productKey: string }) {
  const path = `/admin/v1/products/${encodeURIComponent(productKey)}`;
  const { data, error, reload } = useData<ProductObject>(path);
  return (
    <>
      <nav aria-label="Back">
        <a href={hrefTo(['products'])}>Products</a>
      </nav>
      <Heading title={data?.name ?? productKey}>
        {data !== null && <ProductActions product={data} onDone={reload} />}
      </Heading>
      {error !== null && <Notice tone="fail">{error.message}</Notice>}
      {data !== null && <ProductCards product={data} />}
      <SameCommand line={`latchkey product show ${quoted(productKey)}`} />
    </>
  );
}

function ProductCards({ product }: { product: ProductObject }) {
  const { product_key: key, recurring } = product;
  return (
    <div class="grid">
      <Card title="Sale" side={<ProductState {...product} />}>
        <Fields
          entries={{
            Key: <code>{key}</code>,
            Price: recurring ? 'recurring' : 'paid once',
            Account: product.account_id,
            'A license is valid for': product.license_for ?? 'ever',
            'Answered as valid after its end for':
              product.expiry_grace_s > 0 && duration(product.expiry_grace_s),
            'A license unlocks': product.entitlements.length > 0 && product.entitlements.join(', '),
          }}
        />
        <p>
          <a href={hrefTo(['licenses'], { product: key })}>Its licenses</a> ·{' '}
          <a href={hrefTo(['purchases'], { product: key })}>Its purchases</a>
        </p>
      </Card>
      <Card title="Seats and leases" side={<strong>{seatsText(product.seats)}</strong>}>
        <p>
          {product.seats === null
            ? 'A license works on any number of devices at the same time.'
            : `A license works on ${counted(product.seats, 'device')} at the same time.`}
        </p>
        <Fields
          entries={{
            'A lease is valid for': duration(product.lease_term_s),
            'A device renews it after': duration(product.lease_refresh_s),
            'A seat stays taken after the last lease for': duration(product.lease_hold_s),
            'The lease names the customer': product.lease_email ? 'yes' : 'no',
          }}
        />
        <p>
          <a href={hrefTo(['devices'], { product: key })}>Its devices</a>
        </p>
      </Card>
    </div>
  );
}

function ProductActions({ product, onDone }: { product: ProductObject; onDone: () => void }) {
  const { product_key: key, name, archived } = product;
  return (
    <>
      {!archived && <Action isMain {...sell([product])} />}
      <EditProduct product={product} onDone={onDone} />
      <Action
        {...rotate({
          what: 'secret',
          of: name,
          command: `latchkey product rotate ${quoted(key)}`,
          run: async (body) =>
            (
              await send<ProductObject>(
                'POST',
                `/admin/v1/products/${encodeURIComponent(key)}/rotate-secret`,
                body,
              )
            ).secret,
        })}
      />
      <Archive product={product} onDone={onDone} key={key} />
    </>
  );
}

function update(product: ProductObject, change: object): Promise<void> {
  const { product_key: key, name, recurring, archived } = product;
  const body = { name, recurring, archived, ...change };
  return send<void>('PUT', `/admin/v1/products/${encodeURIComponent(key)}`, body);
}

function EditProduct({ product, onDone }: { product: ProductObject; onDone: () => void }) {
  const { product_key: key, name, expiry_grace_s: grace } = product;
  const before = {
    name,
    recurring: String(product.recurring),
    seats: product.seats?.toString() ?? '',
    license_for: product.license_for ?? '',
    entitlements: product.entitlements.join(', '),
    expiry_grace_s: grace === 0 ? '' : String(grace / daySeconds),
  };
  const fields = { name: { option: '--name', word: (text: string) => text || name }, ...productTerms };
  return (
    <Action
      label="Change"
      title={`Change ${name}`}
      consequence="Licenses that were sold stay as they are, except for the grace. Fewer seats take no lease away: devices keep their seat until they give it back or stop renewing."
      command={(form) =>
        [`latchkey product update ${quoted(key)}`, ...changedOptions(form, fields, before)].join(' ')
      }
      run={(form) => update(product, changedParameters(form, fields, before))}
      onDone={onDone}
    >
      <Field label="Name" name="name" value={name} isRequired />
      <ProductTermFields before={before} />
    </Action>
  );
}

function Archive({ product, onDone }: { product: ProductObject; onDone: () => void }) {
  const { product_key: key, name, archived } = product;
  return (
    <Action
      label={archived ? 'Sell again' : 'Archive'}
      title={archived ? `Sell ${name} again?` : `Stop selling ${name}?`}
      consequence={
        archived
          ? 'New licenses can be issued again.'
          : 'No new license is issued, and coupons no longer apply to it. The keys that were sold stay valid. You can sell it again later.'
      }
      command={`latchkey product ${archived ? 'unarchive' : 'archive'} ${quoted(key)}`}
      isDangerous={!archived}
      run={() => update(product, { archived: !archived })}
      onDone={onDone}
    />
  );
}
