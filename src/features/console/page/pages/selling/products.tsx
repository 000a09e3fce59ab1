import type { ProductObject } from '../../../../../wire/catalogue.ts';
import { send } from '../../api.ts';
import { count, counted, duration } from '../../format.ts';
import type { PageProps } from '../../page-props.ts';
import { Action, Field, fieldText, filled } from '../../parts/action.tsx';
import { quoted, SameCommand } from '../../parts/command.tsx';
import { ListPage, type List } from '../../parts/list.tsx';
import { Badge, Notice } from '../../parts/notice.tsx';
import { Card, Fields, Heading } from '../../parts/page.tsx';
import { Secret } from '../../parts/secret.tsx';
import { hrefTo } from '../../router.ts';
import { useData } from '../../use-data.ts';
import { rotate } from '../../parts/rotate.tsx';
import { EntitlementsField, wordsOf } from '../licenses/terms.tsx';
import { sell } from './sell.tsx';

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
    command: (form) => `latchkey product add ${quoted(fieldText(form, 'name') || 'NAME')}${newOptions(form)}`,
    run: async (form) => {
      const { product_key: key, secret } = await send<ProductObject>('POST', '/admin/v1/products', {
        seats: 'unlimited',
        ...filled(form),
        entitlements: wordsOf(form),
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
        <PriceField />
        <SeatsField />
        <LicenseForField />
        <EntitlementsField value="" />
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

function newOptions(form: FormData): string {
  const { recurring, seats, license_for: span, entitlements } = filled(form);
  return [
    ...(recurring === 'true' ? [' --recurring'] : []),
    ...(seats === undefined ? [] : [` --seats ${quoted(seats)}`]),
    ...(span === undefined ? [] : [` --license-for ${quoted(span)}`]),
    ...(entitlements === undefined ? [] : [` --entitlement ${quoted(entitlements)}`]),
  ].join('');
}

function PriceField({ recurring = false }: { recurring?: boolean }) {
  return (
    <Field
      label="Price"
      name="recurring"
      value={String(recurring)}
      options={[
        ['false', 'Paid once'],
        ['true', 'Recurring: coupons do not apply'],
      ]}
    />
  );
}

function SeatsField({ seats = null }: { seats?: number | null }) {
  return (
    <Field
      label="Seats"
      name="seats"
      value={seats === null ? '' : String(seats)}
      help="On how many devices a license works at the same time; empty: any number."
    />
  );
}

function LicenseForField({ value = null }: { value?: string | null }) {
  return (
    <Field
      label="A license is valid for"
      name="license_for"
      value={value ?? ''}
      help="Such as 30d, 6mo or 1y; empty: for ever."
    />
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
  const { product_key: key, name, recurring, seats, license_for: span, entitlements } = product;
  const words = entitlements.join(', ');
  return (
    <Action
      label="Change"
      title={`Change ${name}`}
      consequence="Licenses that were sold stay as they are. Fewer seats take no lease away: devices keep their seat until they give it back or stop renewing."
      command={(form) => {
        const [newName, newPrice] = [fieldText(form, 'name'), fieldText(form, 'recurring')];
        return [
          `latchkey product update ${quoted(key)}`,
          ...(newName === name || newName === '' ? [] : [`--name ${quoted(newName)}`]),
          ...(newPrice === String(recurring) || newPrice === '' ? [] : [`--recurring ${newPrice}`]),
          `--seats ${quoted(fieldText(form, 'seats') || 'unlimited')}`,
          ...(fieldText(form, 'license_for') === (span ?? '')
            ? []
            : [`--license-for ${quoted(fieldText(form, 'license_for') || 'none')}`]),
          ...(fieldText(form, 'entitlements') === words
            ? []
            : [`--entitlement ${quoted(fieldText(form, 'entitlements') || 'none')}`]),
        ].join(' ');
      }}
      run={(form) =>
        update(product, {
          name: fieldText(form, 'name'),
          recurring: fieldText(form, 'recurring') === 'true',
          seats: fieldText(form, 'seats') || 'unlimited',
          license_for: fieldText(form, 'license_for') || 'none',
          entitlements: wordsOf(form),
        })
      }
      onDone={onDone}
    >
      <Field label="Name" name="name" value={name} isRequired />
      <PriceField recurring={recurring} />
      <SeatsField seats={seats} />
      <LicenseForField value={span} />
      <EntitlementsField value={words} />
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
