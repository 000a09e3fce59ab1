import type { OverviewObject } from '../../../wire/console.ts';
import type { CountedCouponObject, CouponObject } from '../../../../../wire/coupon.ts';
import { send } from '../../api.ts';
import { useDaemon } from '../../daemon.tsx';
import { counted } from '../../format.ts';
import { Action, Field, fieldText, type ActionProps } from '../../parts/action.tsx';
import { quoted } from '../../parts/command.tsx';
import { goTo } from '../../router.ts';
import { useData } from '../../use-data.ts';
import { InCurrency } from './amount.tsx';
import { amountPattern, centsOf, percentPattern } from './money.ts';

type Terms = Readonly<Record<string, string | number>>;

/** A number, or else the text: the daemon then says what is wrong with it. */
function numberOr(text: string): string | number {
  return /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : text;
}

type Dates = Pick<CountedCouponObject, 'start_date' | 'end_date'>;

const noDates: Dates = { start_date: null, end_date: null };

function dayOf(instant: string | null): string {
  return (instant ?? '').slice(0, 10);
}

/** The instant of a day in a form. A day that was not changed keeps its time. */
function instantOf(day: string, { was, time }: { was: string | null; time: string }): string | null {
  if (day === '') return null;
  return day === dayOf(was) ? was : `${day}T${time}Z`;
}

/** The optional terms that a form has, by their names in the API. `was`: the dates before. */
function optionalTerms(form: FormData, was: Dates = noDates): Terms {
  const start = instantOf(fieldText(form, 'from'), { was: was.start_date, time: '00:00:00' });
  const end = instantOf(fieldText(form, 'to'), { was: was.end_date, time: '23:59:59' });
  const [limit, minimum] = [fieldText(form, 'limit'), fieldText(form, 'minimum')];
  const notes = fieldText(form, 'notes');
  return {
    ...(start !== null && { start_date: start }),
    ...(end !== null && { end_date: end }),
    ...(limit !== '' && { usage_limit: numberOr(limit) }),
    ...(minimum !== '' && { minimum_purchase_amount: centsOf(minimum) ?? minimum }),
    ...(notes !== '' && { notes }),
  };
}

/** The values of the optional fields of a form, by the names of the options of the command. */
function optionsIn(form: FormData): Readonly<Record<string, string>> {
  const minimum = fieldText(form, 'minimum');
  return {
    'start-date': fieldText(form, 'from'),
    'end-date': fieldText(form, 'to'),
    'usage-limit': fieldText(form, 'limit'),
    'minimum-purchase-amount': amountText(minimum),
    notes: fieldText(form, 'notes'),
  };
}

/** An amount as the command takes it, `5.00`; other text as it is. */
function amountText(text: string): string {
  const cents = centsOf(text);
  return cents === null ? text : (cents / 100).toFixed(2);
}

function optionsOf(coupon: CountedCouponObject): Readonly<Record<string, string>> {
  return {
    'start-date': dayOf(coupon.start_date),
    'end-date': dayOf(coupon.end_date),
    'usage-limit': String(coupon.usage_limit ?? ''),
    'minimum-purchase-amount':
      coupon.minimum_purchase_amount === null ? '' : (coupon.minimum_purchase_amount / 100).toFixed(2),
    notes: coupon.notes ?? '',
  };
}

/** `--usage-limit 5` and so on, for the values that are not as before. `none` removes a value. */
function changedOptions(form: FormData, before: Readonly<Record<string, string>> = {}): string[] {
  return Object.entries(optionsIn(form)).flatMap(([name, value]) =>
    value === (before[name] ?? '') ? [] : [`--${name} ${quoted(value === '' ? 'none' : value)}`],
  );
}

function OptionalFields({ coupon }: { coupon?: CountedCouponObject }) {
  const minimum = coupon?.minimum_purchase_amount ?? null;
  return (
    <>
      <div class="pair">
        <Field
          label="From"
          name="from"
          parameters={['start_date']}
          type="date"
          value={dayOf(coupon?.start_date ?? null)}
          help="From the start of this day (UTC); empty: at once."
        />
        <Field
          label="To"
          name="to"
          parameters={['end_date']}
          type="date"
          value={dayOf(coupon?.end_date ?? null)}
          help="To the end of this day (UTC); empty: until you end it."
        />
      </div>
      <div class="pair">
        <Field
          label="Limit"
          name="limit"
          parameters={['usage_limit']}
          value={String(coupon?.usage_limit ?? '')}
          help="How many orders may use it; empty: any number."
        />
        <Field
          label="Minimum of the cart"
          name="minimum"
          parameters={['minimum_purchase_amount']}
          value={minimum === null ? '' : (minimum / 100).toFixed(2)}
          help={
            <>
              Such as 60.00
              <InCurrency />; empty: none.
            </>
          }
          pattern={amountPattern}
        />
      </div>
      <Field
        label="Notes"
        name="notes"
        isLong
        value={coupon?.notes ?? ''}
        help="For yourself; customers do not see them."
      />
    </>
  );
}

export function createCoupon(role: OverviewObject['role']): ActionProps {
  const later =
    role === 'agent' ? ' It is sent to the upstream, and queued while the upstream is unreachable.' : '';
  return {
    label: 'Create a coupon',
    title: 'Create a coupon',
    consequence: `Customers can use the code as soon as the coupon starts. After the first order, its code and discount cannot change.${later}`,
    command: createCommand,
    run: async (form) => {
      const coupon = await send<CouponObject>('POST', '/api/v2/coupons', {
        code: fieldText(form, 'code'),
        ...scopeOf(form),
        ...discountOf(form),
        ...optionalTerms(form),
      });
      goTo(['coupons', String(coupon.id)]);
    },
    children: (
      <>
        <div class="pair">
          <Field label="Code" name="code" isRequired help="What customers enter, such as SPRING." />
          <Field
            label="Discount"
            name="discount"
            parameters={['percent_off', 'amount_off']}
            isRequired
            help={
              <>
                20% for a percentage, 5.00 for an amount
                <InCurrency />.
              </>
            }
            pattern={`${percentPattern}|${amountPattern}`}
          />
        </div>
        <ScopeField />
        <OptionalFields />
      </>
    ),
  };
}

/** The value of a choice is `multi`, `single KEY` or `collection ID`. */
function ScopeField() {
  const { role, products } = useDaemon();
  const path = role === 'authority' ? '/admin/v1/collections?limit=100' : null;
  const collections =
    useData<{ collections: { collection_id: string; name: string }[] }>(path).data?.collections ?? [];
  if (role !== 'authority') {
    return (
      <Field
        label="Only for the product"
        name="product"
        parameters={['product_key']}
        help="A product key; empty: for all products."
      />
    );
  }
  const sold = (products ?? []).filter(({ archived, recurring }) => !archived && !recurring);
  return (
    <Field
      label="For"
      name="scope"
      parameters={['coupon_type', 'product_key', 'collection_id']}
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
      ? `--amount-off ${quoted(amountText(fieldText(form, 'discount')) || 'AMOUNT')}`
      : `--percent-off ${quoted(String(discount['percent_off']))}`,
    ...changedOptions(form),
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
        command={(form) =>
          [`latchkey coupon update ${id}`, ...changedOptions(form, optionsOf(coupon))].join(' ')
        }
        run={(form) => send<void>('PUT', path, { ...fixedTerms(coupon), ...optionalTerms(form, coupon) })}
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
