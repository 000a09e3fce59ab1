import type { OverviewObject } from '../../../wire/console.ts';
import type { CountedCouponObject } from '../../../../../wire/coupon.ts';
import { withQuery } from '../../api.ts';
import { count, counted } from '../../format.ts';
import type { PageProps } from '../../page-props.ts';
import { Field } from '../../parts/action.tsx';
import { quoted, SameCommand } from '../../parts/command.tsx';
import { FilterForm } from '../../parts/filter.tsx';
import { Badge, Notice, type Tone } from '../../parts/notice.tsx';
import { Card, Fields, Heading, Section } from '../../parts/page.tsx';
import { ListTable, type Column } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { hrefTo } from '../../router.ts';
import { useData, usePages } from '../../use-data.ts';
import { useProductNames, type ProductNames } from '../products.tsx';
import { TryCoupon } from './cart.tsx';
import { CouponActions, CreateCoupon } from './coupon-actions.tsx';
import { money } from './money.ts';

type Role = OverviewObject['role'];
type State = CountedCouponObject['state'];

/** Coupons, and a cart to try them on. */
export function Coupons({ route, overview }: PageProps) {
  const [, id] = route.path;
  const role = overview.data?.role ?? 'authority';
  if (id !== undefined) return <CouponPage id={id} role={role} />;
  return <CouponList query={route.query} role={role} />;
}

const states: readonly (readonly [state: '' | State, text: string])[] = [
  ['', 'all'],
  ['active', 'active'],
  ['scheduled', 'scheduled'],
  ['used_up', 'used up'],
  ['ended', 'ended'],
];

const tones: Readonly<Record<State, Tone>> = {
  active: 'ok',
  scheduled: 'quiet',
  used_up: 'warn',
  ended: 'quiet',
};

function CouponState({ state }: { state: State }) {
  return <Badge tone={tones[state]}>{state.replace('_', ' ')}</Badge>;
}

function CouponList({ query, role }: { query: URLSearchParams; role: Role }) {
  const [state, code] = [query.get('state') ?? '', query.get('code') ?? ''];
  const path = withQuery('/agent/v1/coupons', { state, code, limit: '25' });
  const pages = usePages<CountedCouponObject>(path, 'coupons');
  const names = useProductNames(role);
  const options = [
    ...(state === '' ? [] : [`--state ${state}`]),
    ...(code === '' ? [] : [`--code ${quoted(code)}`]),
  ];
  return (
    <>
      <Heading title="Coupons">
        <CreateCoupon role={role} onDone={pages.reload} />
      </Heading>
      <nav class="choice" aria-label="State">
        {states.map(([value, text]) => (
          <a
            key={value}
            href={hrefTo(['coupons'], { state: value, code })}
            aria-current={state === value ? 'true' : undefined}
          >
            {text}
          </a>
        ))}
      </nav>
      <FilterForm path={['coupons']} query={query} names={['code']}>
        <Field label="Code" name="code" type="search" value={code} />
      </FilterForm>
      <ListTable
        caption={pages.total === null ? 'Coupons' : `Coupons: ${count(pages.total)}`}
        pages={pages}
        columns={columnsOf(names)}
        keyOf={({ id }) => id}
        empty={state === '' && code === '' ? 'There is no coupon yet.' : 'No coupon fits this filter.'}
      />
      <SameCommand line={['latchkey coupon list', ...options].join(' ')} />
      <TryCoupon code={null} role={role} />
    </>
  );
}

function discountText({ percent_off: percent, amount_off: amount }: CountedCouponObject): string {
  return percent === null ? `${money(amount ?? 0)} off` : `${count(percent)} % off`;
}

function scopeText(coupon: CountedCouponObject, names: ProductNames): string {
  const { coupon_type: type, product_key: key, collection_id: collection } = coupon;
  if (type === 'multi') return 'all products';
  return type === 'single' ? (names.get(key ?? '') ?? key ?? '') : `the collection ${collection}`;
}

function usedText({ redemptions, usage_limit: limit }: CountedCouponObject): string {
  return limit === null ? count(redemptions) : `${count(redemptions)} of ${count(limit)}`;
}

function columnsOf(names: ProductNames): readonly Column<CountedCouponObject>[] {
  return [
    {
      name: 'Code',
      cell: ({ id, code }) => (
        <a class="key short" href={hrefTo(['coupons', String(id)])}>
          {code}
        </a>
      ),
    },
    { name: 'State', cell: ({ state }) => <CouponState state={state} /> },
    { name: 'Discount', cell: discountText },
    { name: 'For', cell: (coupon) => scopeText(coupon, names) },
    { name: 'Used', kind: 'number', cell: usedText },
    { name: 'Valid', cell: validity },
  ];
}

/** From when, if that is to come, or until when. */
function validity({ state, start_date: start, end_date: end }: CountedCouponObject) {
  if (state === 'scheduled' && start !== null) {
    return (
      <>
        from <Time at={start} />
      </>
    );
  }
  if (end === null) return 'always';
  return (
    <>
      {state === 'ended' ? 'ended' : 'until'} <Time at={end} />
    </>
  );
}

type Redeemed = CountedCouponObject & { orders: string[] };

function CouponPage({ id, role }: { id: string; role: Role }) {
  const { data, error, reload } = useData<Redeemed>(`/agent/v1/coupons/${encodeURIComponent(id)}`);
  const names = useProductNames(role);
  return (
    <>
      <nav aria-label="Back">
        <a href={hrefTo(['coupons'])}>Coupons</a>
      </nav>
      <Heading title={data?.code ?? 'Coupon'}>
        {data !== null && role === 'authority' && <CouponActions coupon={data} onDone={reload} />}
      </Heading>
      {error !== null && <Notice tone="fail">{error.message}</Notice>}
      {data !== null && (
        <>
          <div class="grid">
            <TermsCard coupon={data} names={names} />
            <UsesCard coupon={data} />
          </div>
          <TryCoupon code={data.code} role={role} />
          <Orders coupon={data} />
        </>
      )}
      <SameCommand line={`latchkey coupon show ${quoted(id)}`} />
    </>
  );
}

function TermsCard({ coupon, names }: { coupon: Redeemed; names: ProductNames }) {
  const { minimum_purchase_amount: minimum, notes, state } = coupon;
  return (
    <Card title="Terms" side={<CouponState state={state} />}>
      <p class="figure">{discountText(coupon)}</p>
      <Fields
        entries={{
          For: scopeText(coupon, names),
          'Minimum of the cart': minimum === null ? 'none' : money(minimum),
          From: coupon.start_date === null ? 'its creation' : <Time at={coupon.start_date} />,
          To: coupon.end_date === null ? 'it is ended' : <Time at={coupon.end_date} />,
          Notes: notes !== null && <span class="notes">{notes}</span>,
        }}
      />
    </Card>
  );
}

function UsesCard({ coupon }: { coupon: Redeemed }) {
  const { redemptions, usage_limit: limit, scope } = coupon;
  const left = limit === null ? null : Math.max(0, limit - redemptions);
  return (
    <Card title="Used">
      <p class="figure">{usedText(coupon)}</p>
      <p>
        {left === null
          ? 'There is no limit.'
          : left === 0
            ? 'No use is left.'
            : `${counted(left, 'use is', 'uses are')} left.`}
      </p>
      {scope === 'this_agent' && <p class="quiet">Only the redemptions on this machine are counted here.</p>}
    </Card>
  );
}

const shownOrders = 12;

function Orders({ coupon: { orders, redemptions } }: { coupon: Redeemed }) {
  if (orders.length === 0) return null;
  const rest = redemptions - Math.min(orders.length, shownOrders);
  return (
    <Section title="Orders that redeemed it, the latest first">
      <ul class="tags">
        {orders.slice(0, shownOrders).map((order) => (
          <li key={order}>
            <code>{order}</code>
          </li>
        ))}
        {rest > 0 && <li class="quiet">and {counted(rest, 'more order')}</li>}
      </ul>
    </Section>
  );
}
