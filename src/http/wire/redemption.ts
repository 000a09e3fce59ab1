import { z } from 'zod';
import { formatDatetime } from '../../domain/datetime.ts';
import type { Cart } from '../../domain/checkout/quote.ts';
import { maximumOrderLength, orderPattern, type Redemption } from '../../domain/checkout/redemption.ts';
import type { Page } from '../../domain/page.ts';
import type { RoleName } from '../../domain/role.ts';
import { integer, textLike } from './common/kind.ts';
import { pageShape } from './common/page.ts';
import { parameters, type ParameterSet, without } from './common/parameters.ts';
import { cartParameters, presentQuote, quoteShape, type QuoteObject } from './quote.ts';

/** A redemption: the quote that it was made by, and when. */
export type RedemptionObject = QuoteObject & { order: string; redeemed_at: string; over_limit: boolean };

export const redemptionObject: z.ZodType<RedemptionObject> = z
  .object({
    order: z.string(),
    ...quoteShape,
    redeemed_at: z.iso.datetime({ offset: true }),
    over_limit: z.boolean(),
  })
  .meta({ id: 'Redemption' });

export const redemptionList: z.ZodType<{ redemptions: RedemptionObject[] }> = z
  .object({
    redemptions: z.array(redemptionObject),
  })
  .meta({ id: 'RedemptionList' });

/** Writes a redemption. */
export function presentRedemption(
  { order, quote, redeemedAt }: Redemption,
  role: RoleName,
): RedemptionObject {
  return {
    order,
    ...presentQuote(quote, role),
    redeemed_at: formatDatetime(redeemedAt),
    // The limit was held when it was recorded: whoever counts the redemptions records them.
    over_limit: false,
  };
}

const order = parameters({
  order: textLike(
    orderPattern,
    maximumOrderLength,
    `must have 1 to ${maximumOrderLength} characters, no control characters, and not be . or ..`,
  ),
});

/** The parameters of a redemption: an order and its cart. */
export const redemptionParameters: ParameterSet<{ order: string; cart: Cart }> = {
  schema: order.schema.extend(cartParameters.schema.shape).strict().meta({ id: 'Order' }),
  read(raw) {
    const named = order.read(raw);
    const carried = cartParameters.read(without(raw, 'order'));
    if (named.ok && carried.ok) return { ok: true, values: { ...named.values, ...carried.values } };
    const faults = [named, carried].flatMap((each) => (each.ok ? [] : each.faults));
    return { ok: false, values: { ...named.values, ...carried.values }, faults };
  },
};

/** Which redemptions to list: those of a coupon. */
export const redemptionQuery: ParameterSet<{ couponId: number } & Page> = parameters({
  coupon_id: integer(Number.MIN_SAFE_INTEGER),
  ...pageShape('redemptions'),
});
