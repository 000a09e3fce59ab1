import { useEffect, useId, useState } from 'preact/hooks';
import type { QuoteObject } from '../../../../../wire/checkout.ts';
import type { ProductObject } from '../../../../../wire/catalogue.ts';
import { type ApiError, asApiError, send } from '../../api.ts';
import { useDaemon } from '../../daemon.tsx';
import { Refusal } from '../../parts/action.tsx';
import { quoted, SameCommand } from '../../parts/command.tsx';
import { Notice } from '../../parts/notice.tsx';
import { Section } from '../../parts/page.tsx';
import { Money } from './amount.tsx';
import { centsOf } from './money.ts';

/** A line of the cart as a person types it. */
type Line = {
  readonly id: number;
  readonly productKey: string;
  readonly price: string;
  readonly quantity: string;
  /** Only on an agent, which does not know the collections of the upstream. */
  readonly collections: string;
};

type Item = { product_key: string; amount: number; quantity: number; collection_ids?: string[] };

/** A cart to try a coupon on. Nothing is redeemed. `code`: null lets the person type the code. */
export function TryCoupon({ code }: { code: string | null }) {
  const { role, products } = useDaemon();
  const sold = products?.filter(({ archived }) => !archived) ?? null;
  // Without a product there is no cart. An agent does not know the products of its upstream.
  if (role === 'authority' && (sold === null || sold.length === 0)) return null;
  return <Cart code={code} products={sold} />;
}

let nextLine = 0;

function newLine(products: readonly ProductObject[] | null): Line {
  nextLine += 1;
  return {
    id: nextLine,
    productKey: products?.[0]?.product_key ?? '',
    price: '',
    quantity: '1',
    collections: '',
  };
}

function Cart({ code, products }: { code: string | null; products: readonly ProductObject[] | null }) {
  const [typed, setTyped] = useState('');
  const [lines, setLines] = useState<readonly Line[]>(() => [newLine(products)]);
  const change = (id: number, changed: Partial<Line>): void =>
    setLines(lines.map((line) => (line.id === id ? { ...line, ...changed } : line)));
  const entered = code ?? typed.trim();
  const items = itemsOf(lines);
  const codeId = useId();
  return (
    <Section title={code === null ? 'Try a coupon with a cart' : `Try ${code} with a cart`}>
      <p class="quiet">Nothing is redeemed. The answer is the one that your shop gets now.</p>
      {code === null && (
        <div class="field">
          <label for={codeId}>Coupon code</label>
          <input
            id={codeId}
            name="code"
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
            autocomplete="off"
            spellcheck={false}
          />
        </div>
      )}
      <ul class="cart">
        {lines.map((line, index) => (
          <CartLine
            key={line.id}
            line={line}
            number={index + 1}
            products={products}
            onChange={(changed) => change(line.id, changed)}
            onRemove={lines.length === 1 ? null : () => setLines(lines.filter(({ id }) => id !== line.id))}
          />
        ))}
      </ul>
      <div>
        <button type="button" onClick={() => setLines([...lines, newLine(products)])}>
          Add another product
        </button>
      </div>
      <Answer code={entered} items={items} />
      <SameCommand line={commandOf(entered, items)} />
    </Section>
  );
}

/** The items of a cart; null while a line is not complete. */
function itemsOf(lines: readonly Line[]): Item[] | null {
  const items = lines.flatMap<Item>(({ productKey, price, quantity, collections }) => {
    const amount = centsOf(price);
    const pieces = /^\d{1,6}$/.test(quantity) ? Number(quantity) : 0;
    if (amount === null || pieces === 0 || productKey.trim() === '') return [];
    const ids = collections.split(',').flatMap((id) => (id.trim() === '' ? [] : [id.trim()]));
    const item = { product_key: productKey.trim(), amount, quantity: pieces };
    return [ids.length === 0 ? item : { ...item, collection_ids: ids }];
  });
  return items.length === lines.length ? items : null;
}

function commandOf(code: string, items: readonly Item[] | null): string {
  const shown: readonly Item[] = items ?? [{ product_key: 'PRODUCT', amount: 1000, quantity: 1 }];
  const words = shown.map(({ product_key: key, amount, quantity, collection_ids: ids = [] }) => {
    const pieces = quantity === 1 ? '' : `x${quantity}`;
    return quoted(`${key}=${amount}c${pieces}${ids.length === 0 ? '' : `@${ids.join(',')}`}`);
  });
  return ['latchkey coupon quote', code === '' ? 'CODE' : quoted(code), ...words].join(' ');
}

function CartLine({
  line: { productKey, price, quantity, collections },
  number,
  products,
  onChange,
  onRemove,
}: {
  line: Line;
  number: number;
  products: readonly ProductObject[] | null;
  onChange: (changed: Partial<Line>) => void;
  onRemove: (() => void) | null;
}) {
  return (
    <li>
      {products === null ? (
        <CartField
          label={`Product ${number}`}
          value={productKey}
          example="product key"
          onChange={(text) => onChange({ productKey: text })}
        />
      ) : (
        <ProductField
          label={`Product ${number}`}
          value={productKey}
          products={products}
          onChange={(text) => onChange({ productKey: text })}
        />
      )}
      <CartField label="Price" value={price} example="49.00" onChange={(text) => onChange({ price: text })} />
      <CartField label="Pieces" value={quantity} onChange={(text) => onChange({ quantity: text })} />
      {products === null && (
        <CartField
          label="Its collections"
          value={collections}
          example="ids, with commas"
          onChange={(text) => onChange({ collections: text })}
        />
      )}
      {onRemove !== null && (
        <button type="button" onClick={onRemove} aria-label={`Remove product ${number}`}>
          Remove
        </button>
      )}
    </li>
  );
}

type CartFieldProps = { label: string; value: string; onChange: (text: string) => void };

function CartField({ label, value, example, onChange }: CartFieldProps & { example?: string }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        value={value}
        placeholder={example}
        size={10}
        onInput={(event) => onChange(event.currentTarget.value)}
        autocomplete="off"
      />
    </div>
  );
}

function ProductField({
  label,
  value,
  products,
  onChange,
}: CartFieldProps & { products: readonly ProductObject[] }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} onChange={(event) => onChange(event.currentTarget.value)}>
        {products.map(({ product_key: key, name, recurring }) => (
          <option key={key} value={key} selected={key === value}>
            {name}
            {recurring ? ' (recurring)' : ''}
          </option>
        ))}
      </select>
    </div>
  );
}

const quoteAfterMs = 250;

/** Asks while the person types. The last answer stays until the next one is there. */
function Answer({ code, items }: { code: string; items: readonly Item[] | null }) {
  const [quote, setQuote] = useState<QuoteObject | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const body = items === null || code === '' ? null : JSON.stringify({ code, items });
  useEffect(() => {
    if (body === null) return undefined;
    let isOver = false;
    const ask = async (): Promise<void> => {
      try {
        const read = await send<QuoteObject>('POST', '/agent/v1/quote', JSON.parse(body));
        if (isOver) return;
        setQuote(read);
        setError(null);
      } catch (caught) {
        if (!isOver) setError(asApiError(caught));
      }
    };
    const timer = setTimeout(() => void ask(), quoteAfterMs);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [body]);
  if (body === null) {
    return (
      <p class="quiet">
        {code === '' ? 'Type a coupon code' : 'Type the price of each product'}, and the answer appears here.
      </p>
    );
  }
  if (error !== null) return <Refusal error={error} />;
  return quote === null ? <p class="quiet">Asking …</p> : <Quote quote={quote} />;
}

type Reason = QuoteObject['reasons'][number];

const reasonTexts: Readonly<Record<Reason, string>> = {
  unknown_code: 'There is no coupon with this code.',
  not_started: 'The coupon is not valid yet.',
  ended: 'The coupon has ended.',
  usage_limit_reached: 'The coupon was used as often as its limit allows.',
  minimum_not_met: 'The cart costs less than the minimum of the coupon.',
  product_not_covered: 'The coupon is for another product.',
  collection_not_covered: 'No product of the cart is in the collection of the coupon.',
  recurring_not_covered: 'Coupons do not apply to recurring prices.',
};

function Quote({ quote }: { quote: QuoteObject }) {
  const { code, redeemable, reasons, subtotal, discount, total } = quote;
  return (
    <Notice tone={redeemable ? 'ok' : 'warn'}>
      {redeemable ? (
        <>
          <p>
            <strong>{code} works for this cart.</strong>
          </p>
          <p>
            <Money cents={subtotal} /> − <Money cents={discount} /> ={' '}
            <strong>
              <Money cents={total} />
            </strong>
          </p>
        </>
      ) : (
        <>
          <p>
            <strong>{code} does not work for this cart.</strong>
          </p>
          <ul>
            {reasons.map((reason) => (
              <li key={reason}>{reasonTexts[reason]}</li>
            ))}
          </ul>
          <p>
            The cart costs <Money cents={subtotal} />.
          </p>
        </>
      )}
      {quote.scope === 'this_agent' && (
        <p class="quiet">Only the redemptions on this machine are counted here.</p>
      )}
    </Notice>
  );
}
