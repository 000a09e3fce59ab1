import type { Coupon } from '../domain/checkout/coupon.ts';
import {
  notFound,
  foreignProduct,
  done,
  maxFaults,
  failWith,
  failWithFaults,
  type ParameterFault,
  type Result,
} from '../domain/problem/problem.ts';
import type { Product } from '../domain/catalogue.ts';
import {
  quoteCart,
  type Cart,
  type CartLine,
  type Quote,
  type QuoteReason,
  repeatedRedemption,
  type Redemption,
} from '../domain/checkout/quote.ts';
import type { AuthorityReader, Reader, AuthorityTransaction, Transaction } from './tables.ts';
import type { Context } from './ports.ts';

/** `now`: epoch ms. */
type QuoteRequest = {
  accountId: string;
  cart: Cart;
  now: number;
  /** `usage_limit` does not count. */
  isUnlimited?: boolean;
};

/** Finds products of the cart that the account does not have. */
export async function cartFaults(
  reader: AuthorityReader,
  accountId: string,
  lines: readonly CartLine[],
): Promise<readonly ParameterFault[]> {
  return faultsOf(await findProducts(reader, accountId, lines), lines);
}

/** Quotes an account's coupon. The catalogue decides whether a product is recurring, whatever the cart says. */
export async function quoteCoupon(
  reader: AuthorityReader,
  { accountId, cart, now, isUnlimited = false }: QuoteRequest,
): Promise<Result<Quote>> {
  const products = await findProducts(reader, accountId, cart.lines);
  const faults = faultsOf(products, cart.lines);
  if (faults.length > 0) return failWithFaults(faults);
  const archived = archivedIn(products, cart.lines);
  if (archived.length > 0) {
    const detail = 'The cart has products that are no longer sold.';
    return failWith('product_archived', detail, { errors: archived.slice(0, maxFaults) });
  }
  const coupon = await reader.coupons.byCode(accountId, cart.code);
  const collected = await productsCollected(reader, coupon);
  const lines = cart.lines.map((line) => ({
    ...line,
    collectionIds: collected.productKeys.has(line.productKey) ? [collected.collectionId] : [],
    recurring: line.recurring || products.get(line.productKey)?.recurring === true,
  }));
  const isCounted = coupon !== null && !isUnlimited;
  const redemptions = isCounted ? await reader.redemptions.countOf(accountId, coupon.id) : 0;
  return done(quoteCart(coupon, { ...cart, lines }, { now, redemptions }));
}

/** Quotes a coupon of an agent's mirror. The agent knows no collections, so it takes them from the cart. */
export function quoteMirroredCoupon(
  reader: Reader,
  { accountId, cart, now, isUnlimited = false }: QuoteRequest,
): Quote {
  const coupon = reader.mirror.byCode(cart.code)?.coupon ?? null;
  const isCounted = coupon !== null && !isUnlimited;
  const redemptions = isCounted ? reader.redemptions.countOf(accountId, coupon.id) : 0;
  return quoteCart(coupon, cart, { now, redemptions });
}

type Products = ReadonlyMap<string, Product | null>;

/** Products by key; null if the account has no such product. */
async function findProducts(
  { products }: AuthorityReader,
  accountId: string,
  lines: readonly CartLine[],
): Promise<Products> {
  const found = new Map<string, Product | null>();
  for (const { productKey } of lines) {
    if (found.has(productKey)) continue;
    const product = await products.get(productKey);
    found.set(productKey, product?.accountId === accountId ? product : null);
  }
  return found;
}

function faultsOf(products: Products, lines: readonly CartLine[]): ParameterFault[] {
  return lines.flatMap(({ productKey }, index) => {
    return products.get(productKey) === null ? [foreignProduct(`items[${index}].product_key`)] : [];
  });
}

function archivedIn(products: Products, lines: readonly CartLine[]): ParameterFault[] {
  return lines.flatMap(({ productKey }, index) => {
    const archivedAt = products.get(productKey)?.archivedAt ?? null;
    if (archivedAt === null) return [];
    const detail = 'This product is no longer sold.';
    return [{ parameter: `items[${index}].product_key`, code: 'product_archived', detail }];
  });
}

/** The products of the coupon's collection; none for another scope. */
async function productsCollected(
  { collections }: AuthorityReader,
  coupon: Coupon | null,
): Promise<{ collectionId: string; productKeys: ReadonlySet<string> }> {
  if (coupon?.scope.type !== 'collection') return { collectionId: '', productKeys: new Set() };
  const { collectionId } = coupon.scope;
  const collection = await collections.get(collectionId);
  return { collectionId, productKeys: new Set(collection?.productKeys) };
}

export type RedeemCoupon = {
  accountId: string;
  order: string;
  cart: Cart;
  /**
   * When an agent answered its caller without this authority (epoch ms): the coupon is judged at that time, and
   * `usage_limit` does not refuse the redemption. Null or absent: nothing was answered.
   */
  takenAt?: number | null;
};

/** `isNew`: this request made the redemption. */
export type RedeemedCoupon = { redemption: Redemption; isNew: boolean };

/** Redeems an account's coupon for an order. A repeated request with the same order and cart gets the same response. */
export async function redeemCoupon(
  transaction: AuthorityTransaction,
  command: RedeemCoupon,
  { now }: Context,
): Promise<Result<RedeemedCoupon>> {
  return await redeemOnce(transaction, command, now, async (asked) => await quoteCoupon(transaction, asked));
}

/** Redeems a coupon of an agent's mirror. The upstream is not notified. `isUnlimited`: `usage_limit` does not count. */
export async function redeemMirroredCoupon(
  transaction: Transaction,
  command: RedeemCoupon & Pick<QuoteRequest, 'isUnlimited'>,
  { now }: Context,
): Promise<Result<RedeemedCoupon>> {
  return await redeemOnce(transaction, command, now, async (asked) =>
    done(quoteMirroredCoupon(transaction, asked)),
  );
}

/**
 * `couponId`: null: there was nothing to void. `answeredAt`: when that was found (epoch ms); absent: this is no answer to an
 * agent.
 */
export type VoidedRedemption = { order: string; couponId: number | null; answeredAt?: number };

type VoidRedemption = { accountId: string; order: string; isFromAgent?: boolean };

/**
 * Voids the redemption of an order, so that the coupon can be used once more. `isFromAgent`: an agent has voided it already.
 * Its answer is stored also if there is no redemption, so that a repetition that arrives late voids no later one.
 */
export async function voidRedemption(
  { redemptions }: AuthorityTransaction,
  { accountId, order, isFromAgent = false }: VoidRedemption,
  { now }: Pick<Context, 'now'>,
): Promise<Result<VoidedRedemption>> {
  const redemption = await redemptions.get(accountId, order);
  if (redemption === null) {
    if (!isFromAgent) return notFound('redemption');
    return { ...done({ order, couponId: null, answeredAt: now }), unchanged: true };
  }
  await redemptions.remove(accountId, order);
  return done({ order, couponId: redemption.couponId });
}

/**
 * Whether an agent's void, which found nothing to void, is carried out again. This store was restored and had lost the
 * redemption, and the agent has sent it again after the void: a restored agent sends all that waits in its outbox.
 * `createdAt`: when the caller voided the order. A redemption from after that, by either clock, is a later one, and stays.
 */
export async function isOvertaken(
  { redemptions }: Pick<AuthorityTransaction, 'redemptions'>,
  { accountId, order, createdAt }: VoidRedemption & { createdAt: number },
  { couponId, answeredAt = -Infinity }: VoidedRedemption,
): Promise<boolean> {
  if (couponId !== null) return false;
  const redemption = await redemptions.get(accountId, order);
  return redemption !== null && redemption.redeemedAt <= Math.min(createdAt, answeredAt);
}

async function redeemOnce(
  { redemptions }: Pick<AuthorityTransaction, 'redemptions'>,
  command: RedeemCoupon & Pick<QuoteRequest, 'isUnlimited'>,
  now: number,
  quoteAs: (asked: QuoteRequest) => Promise<Result<Quote>>,
): Promise<Result<RedeemedCoupon>> {
  const { accountId, order, cart } = command;
  // The clock of the agent may be ahead.
  const takenAt = Math.min(command.takenAt ?? Infinity, now);
  const isTaken = (command.takenAt ?? null) !== null;
  const known = await redemptions.get(accountId, order);
  if (known !== null) {
    const redemption = repeatedRedemption(known, cart);
    if (redemption === null) {
      return failWith('order_reused', 'This order has redeemed a coupon for another cart.');
    }
    return { ...done({ redemption, isNew: false }), unchanged: true };
  }
  const asked = { ...command, now: takenAt };
  const within = await quoteAs(asked);
  const isOver = isTaken && within.ok && isOnlyUsedUp(within.value.reasons);
  const quoted = isOver ? await quoteAs({ ...asked, isUnlimited: true }) : within;
  if (!quoted.ok) return quoted;
  const { value: quote } = quoted;
  if (quote.couponId === null || quote.reasons.length > 0) return notRedeemable(quote.reasons);
  const redemption: Redemption = {
    order,
    couponId: quote.couponId,
    cart,
    quote,
    redeemedAt: takenAt,
    ...(isOver && { overLimit: true }),
  };
  await redemptions.add(accountId, redemption);
  return done({ redemption, isNew: true });
}

/** Whether a coupon could be redeemed but for its usage limit. `reasons`: why it cannot be redeemed. */
export function isOnlyUsedUp(reasons: readonly string[] | undefined): boolean {
  return reasons?.length === 1 && reasons[0] === 'usage_limit_reached';
}

export function notRedeemable(reasons: readonly QuoteReason[]): Result<never> {
  const detail = `The coupon cannot be redeemed for this cart: ${reasons.join(', ')}.`;
  return failWith('coupon_not_redeemable', detail, { reasons });
}
