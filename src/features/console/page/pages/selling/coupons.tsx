import type { CountedCouponObject } from '../../../../../wire/coupon.ts';
import { ProductName, useDaemon } from '../../daemon.tsx';
import { count, counted } from '../../format.ts';
import type { PageProps } from '../../page-props.ts';
import { quoted, SameCommand } from '../../parts/command.tsx';
import { ListPage, type List } from '../../parts/list.tsx';
import { Badge, Notice, type Tone } from '../../parts/notice.tsx';
import { Card, Fields, Heading, Section } from '../../parts/page.tsx';
import { Day, ExactTime } from '../../parts/time.tsx';
import { hrefTo } from '../../router.ts';
import { useData } from '../../use-data.ts';
import { Money } from './amount.tsx';
import { TryCoupon } from './cart.tsx';
import { CouponActions, createCoupon } from './coupon-actions.tsx';

type State = CountedCouponObject['state'];

const coupons: List<CountedCouponObject> = {
  title: 'Coupons',
  path: ['coupons'],
  from: ['/agent/v1/coupons', 'coupons', 25],
  command: 'latchkey coupon list',
  filters: [
    {
      name: 'state',
      label: 'State',
      kind: 'links',
      choices: [
        ['', 'all'],
        ['active', 'active'],
        ['scheduled', 'scheduled'],
        ['used_up', 'used up'],
        ['ended', 'ended'],
      ],
    },
    { name: 'code', label: 'Code', kind: 'search' },
  ],
  caption: 'Coupons',
  empty: 'There is no coupon yet. “Create a coupon” makes the first one, which you can then try with a cart.',
  noMatch: 'No coupon fits this filter.',
  keyOf: ({ id }) => id,
  columns: [
    {
      name: 'Code',
      cell: ({ id, code }) => (
        <a class="key short" href={hrefTo(['coupons', String(id)])}>
          {code}
        </a>
      ),
    },
    { name: 'State', place: 'side', cell: CouponState },
    { name: 'Discount', cell: Discount },
    { name: 'For', cell: (coupon) => <Scope coupon={coupon} /> },
    { name: 'Used', kind: 'number', cell: usedText },
    { name: 'Valid', cell: validity },
  ],
};

/** Coupons, and a cart to try them on. */
export function Coupons({ route: { path, query } }: PageProps) {
  const [, id] = path;
  const { role } = useDaemon();
  if (id !== undefined) return <CouponPage id={id} />;
  return (
    <ListPage list={{ ...coupons, add: createCoupon(role) }} query={query}>
      <TryCoupon code={null} />
    </ListPage>
  );
}

const tones: Readonly<Record<State, Tone>> = {
  active: 'ok',
  scheduled: 'quiet',
  used_up: 'warn',
  ended: 'quiet',
};

function CouponState({ state }: { state: State }) {
  return <Badge tone={tones[state]}>{state.replace('_', ' ')}</Badge>;
}

function Discount({ percent_off: percent, amount_off: amount }: CountedCouponObject) {
  return percent === null ? (
    <>
      <Money cents={amount ?? 0} /> off
    </>
  ) : (
    <>{count(percent)} % off</>
  );
}

function Scope({ coupon }: { coupon: CountedCouponObject }) {
  const { coupon_type: type, product_key: key, collection_id: collection } = coupon;
  if (type === 'multi') return <>all products</>;
  return type === 'single' ? <ProductName of={key ?? ''} /> : <>the collection {collection}</>;
}

function usedText({ redemptions, usage_limit: limit }: CountedCouponObject): string {
  return limit === null ? count(redemptions) : `${count(redemptions)} of ${count(limit)}`;
}

/** From when, if that is to come, or until when. */
function validity({ state, start_date: start, end_date: end }: CountedCouponObject) {
  if (state === 'scheduled' && start !== null) {
    return (
      <>
        from <Day at={start} />
      </>
    );
  }
  if (end === null) return 'always';
  return (
    <>
      {state === 'ended' ? 'ended' : 'until'} <Day at={end} />
    </>
  );
}

type Redeemed = CountedCouponObject & { orders: string[] };

function CouponPage({ id }: { id: string }) {
  const { role } = useDaemon();
  const { data, error, reload } = useData<Redeemed>(`/agent/v1/coupons/${encodeURIComponent(id)}`);
  return (
    <>
      <nav aria-label="Back">
        <a href={hrefTo(['coupons'])}>Coupons</a>
      </nav>
      <Heading title={data?.code ?? 'Coupon'} isCode={data !== null}>
        {data !== null && role === 'authority' && <CouponActions coupon={data} onDone={reload} />}
      </Heading>
      {error !== null && <Notice tone="fail">{error.message}</Notice>}
      {data !== null && (
        <>
          <div class="grid">
            <TermsCard coupon={data} />
            <UsesCard coupon={data} />
          </div>
          <TryCoupon code={data.code} />
          <Orders coupon={data} />
        </>
      )}
      <SameCommand line={`latchkey coupon show ${quoted(id)}`} />
    </>
  );
}

function TermsCard({ coupon }: { coupon: Redeemed }) {
  const { minimum_purchase_amount: minimum, notes, state } = coupon;
  return (
    <Card title="Terms" side={<CouponState state={state} />}>
      <p class="figure">
        <Discount {...coupon} />
      </p>
      <Fields
        entries={{
          For: <Scope coupon={coupon} />,
          'Minimum of the cart': minimum === null ? 'none' : <Money cents={minimum} />,
          From: coupon.start_date === null ? 'its creation' : <ExactTime at={coupon.start_date} />,
          To: coupon.end_date === null ? 'it is ended' : <ExactTime at={coupon.end_date} />,
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
