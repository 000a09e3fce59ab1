import type { OverviewObject } from '../../../wire/console.ts';
import type { CountedCouponObject, CouponObject } from '../../../wire/coupon.ts';
import { send } from '../../api.ts';
import { counted } from '../../format.ts';
import { Action, Field, fieldText } from '../../parts/action.tsx';
import { quoted } from '../../parts/command.tsx';
import { goTo } from '../../router.ts';
import { useData } from '../../use-data.ts';
import { useProducts } from '../products.tsx';
import { centsOf } from './money.ts';

type Terms = Readonly<Record<string, string | number>>;

/** A number, or else the text: the daemon then says what is wrong with it. */
function numberOr(text: string): string | number {
  return /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : text;
}

/** The optional terms that a form has, by their names in the API. */
function optionalTerms(form: FormData): Terms {
  const [from, to, limit] = ['from', 'to', 'limit'].map((name) => fieldText(form, name)) as [
    string,
    string,
    string,
  ];
  const [minimum, notes] = [fieldText(form, 'minimum'), fieldText(form, 'notes')];
  return {
    ...(from !== '' && { start_date: `${from}T00:00:00Z` }),
    ...(to !== '' && { end_date: `${to}T23:59:59Z` }),
    ...(limit !== '' && { usage_limit: numberOr(limit) }),
    ...(minimum !== '' && { minimum_purchase_amount: centsOf(minimum) ?? minimum }),
    ...(notes !== '' && { notes }),
  };
}

/** `--usage-limit 5` and so on. `none`: what an empty field means. */
function optionsOf(form: FormData, none: string | null): string[] {
  const dates = [fieldText(form, 'from'), fieldText(form, 'to')];
  const minimum = fieldText(form, 'minimum');
  const options: [string, string][] = [
    ['start-date', dates[0] ?? ''],
    ['end-date', dates[1] ?? ''],
    ['usage-limit', fieldText(form, 'limit')],
    ['minimum-purchase-amount', String(centsOf(minimum) ?? minimum)],
    ['notes', fieldText(form, 'notes')],
  ];
  return options.flatMap(([name, value]) => {
    const given = value === '' ? none : value;
    return given === null ? [] : [`--${name} ${quoted(given)}`];
  });
}

function OptionalFields({ coupon }: { coupon?: CountedCouponObject }) {
  const minimum = coupon?.minimum_purchase_amount ?? null;
  const day = (instant: string | null | undefined): string => (instant ?? '').slice(0, 10);
  return (
    <>
      <Field
        label="From"
        name="from"
        type="date"
        value={day(coupon?.start_date)}
        help="From the start of this day (UTC); empty: at once."
      />
      <Field
        label="To"
        name="to"
        type="date"
        value={day(coupon?.end_date)}
        help="To the end of this day (UTC); empty: until you end it."
      />
      <Field
        label="Limit"
        name="limit"
        value={String(coupon?.usage_limit ?? '')}
        help="How many orders may use it; empty: any number."
      />
      <Field
        label="Minimum of the cart"
        name="minimum"
        value={minimum === null ? '' : (minimum / 100).toFixed(2)}
        help="Such as 60.00; empty: none."
      />
      <Field
        label="Notes"
        name="notes"
        value={coupon?.notes ?? ''}
        help="For yourself; customers do not see them."
      />
    </>
  );
}

export function CreateCoupon({ role, onDone }: { role: OverviewObject['role']; onDone: () => void }) {
  const later =
    role === 'agent' ? ' It is sent to the upstream, and queued while the upstream is unreachable.' : '';
  return (
    <Action
      label="Create a coupon"
      title="Create a coupon"
      consequence={`Customers can use the code as soon as the coupon starts. After the first order, its code and discount cannot change.${later}`}
      command={createCommand}
      run={async (form) => {
        const coupon = await send<CouponObject>('POST', '/api/v2/coupons', {
          code: fieldText(form, 'code'),
          ...scopeOf(form),
          ...discountOf(form),
          ...optionalTerms(form),
        });
        goTo(['coupons', String(coupon.id)]);
      }}
      onDone={onDone}
    >
      <Field label="Code" name="code" isRequired help="What customers enter, such as SPRING." />
      <Field label="Discount" name="discount" isRequired help="20% for a percentage, 5.00 for an amount." />
      <ScopeField role={role} />
      <OptionalFields />
    </Action>
  );
}

/** The value of a choice is `multi`, `single KEY` or `collection ID`. */
function ScopeField({ role }: { role: OverviewObject['role'] }) {
  const products = useProducts(role) ?? [];
  const path = role === 'authority' ? '/admin/v1/collections?limit=100' : null;
  const collections =
    useData<{ collections: { collection_id: string; name: string }[] }>(path).data?.collections ?? [];
  if (role !== 'authority') {
    return (
      <Field label="Only for the product" name="product" help="A product key; empty: for all products." />
    );
  }
  const sold = products.filter(({ archived, recurring }) => !archived && !recurring);
  return (
    <Field
      label="For"
      name="scope"
      options={[
        ['multi', 'All products'],
        ...sold.map(({ product_key: key, name }): [string, string] => [`single ${key}`, name]),
        ...collections.map(({ collection_id: id, name }): [string, string] => [
          `collection ${id}`,
          `Collection ${name}`,
        ]),
      ]}
    />
  );
}

function scopeOf(form: FormData): Terms {
  const product = fieldText(form, 'product');
  if (product !== '') return { coupon_type: 'single', product_key: product };
  const [type = 'multi', id = ''] = fieldText(form, 'scope').split(' ', 2);
  if (type === 'single') return { coupon_type: 'single', product_key: id };
  if (type === 'collection') return { coupon_type: 'collection', collection_id: id };
  return { coupon_type: 'multi' };
}

function discountOf(form: FormData): Terms {
  const text = fieldText(form, 'discount');
  if (text.endsWith('%')) return { percent_off: numberOr(text.slice(0, -1).trim()) };
  return { amount_off: centsOf(text) ?? text };
}

function createCommand(form: FormData): string {
  const scope = scopeOf(form);
  const discount = discountOf(form);
  return [
    'latchkey coupon create',
    `--code ${quoted(fieldText(form, 'code') || 'CODE')}`,
    `--type ${scope['coupon_type']}`,
    ...(scope['product_key'] === undefined ? [] : [`--product ${quoted(String(scope['product_key']))}`]),
    ...(scope['collection_id'] === undefined
      ? []
      : [`--collection ${quoted(String(scope['collection_id']))}`]),
    discount['percent_off'] === undefined
      ? `--amount-off ${quoted(String(discount['amount_off'] || 'CENTS'))}`
      : `--percent-off ${quoted(String(discount['percent_off']))}`,
    ...optionsOf(form, null),
  ].join(' ');
}

/** What a seller can do with a coupon. */
export function CouponActions({ coupon, onDone }: { coupon: CountedCouponObject; onDone: () => void }) {
  const { id, code, state, redemptions } = coupon;
  const path = `/admin/v1/coupons/${id}`;
  return (
    <>
      <Action
        label="Change"
        title={`Change ${code}`}
        consequence="The new dates, limits and notes count from now on. Orders that have used it keep their discount."
        command={(form) => [`latchkey coupon update ${id}`, ...optionsOf(form, 'none')].join(' ')}
        run={(form) => send<void>('PUT', path, { ...fixedTerms(coupon), ...optionalTerms(form) })}
        onDone={onDone}
      >
        <OptionalFields coupon={coupon} />
      </Action>
      {state !== 'ended' && (
        <Action
          label="End"
          title={`End ${code} now?`}
          consequence={`Customers can no longer use it. The ${counted(redemptions, 'order')} that have used it keep their discount. “Change” can give it a later end.`}
          command={`latchkey coupon end ${id}`}
          isDangerous
          run={() => send<void>('POST', `${path}/end`, {})}
          onDone={onDone}
        />
      )}
      {redemptions === 0 && (
        <Action
          label="Delete"
          title={`Delete ${code}?`}
          consequence="The coupon was never used. It disappears, and its code is free for another coupon. This cannot be undone."
          command={`latchkey coupon delete ${id}`}
          isDangerous
          run={() => send<void>('DELETE', path)}
          onDone={() => goTo(['coupons'])}
        />
      )}
    </>
  );
}

/** The terms that a form of changes does not have. */
function fixedTerms(coupon: CountedCouponObject): Terms {
  const { code, coupon_type, percent_off, amount_off, product_key, collection_id } = coupon;
  return {
    code,
    coupon_type,
    ...(percent_off !== null && { percent_off }),
    ...(amount_off !== null && { amount_off }),
    ...(product_key !== null && { product_key }),
    ...(collection_id !== null && { collection_id }),
  };
}
