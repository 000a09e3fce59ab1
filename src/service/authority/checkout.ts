import type { Cart } from '../../domain/checkout/quote.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import type { Checkout, QuoteResponse, RedemptionResponse } from '../answers.ts';
import { quoteCoupon, knownCode } from '../checkout/quote.ts';
import type { Clock } from '../ports.ts';
import type { AuthorityReader } from '../tables.ts';
import type { Writer } from '../writer.ts';

const provenance = { freshness: 'authoritative' } as const;

export function authorityCheckout(
  reader: AuthorityReader,
  writer: Writer,
  clock: Pick<Clock, 'now'>,
): Checkout {
  const spelled = async (accountId: string, cart: Cart): Promise<Cart> => ({
    ...cart,
    code: await knownCode(cart.code, (code) => reader.coupons.byCode(accountId, code)),
  });
  return {
    async quote(accountId, sent): Promise<Result<QuoteResponse>> {
      const cart = await spelled(accountId, sent);
      const quoted = await quoteCoupon(reader, { accountId, cart, now: clock.now() });
      return quoted.ok ? done({ quote: quoted.value, provenance }) : quoted;
    },
    async redeem(command, writeOptions): Promise<Result<RedemptionResponse>> {
      const cart = await spelled(command.accountId, command.cart);
      const redeemed = await writer.write('redeemCoupon', { ...command, cart }, writeOptions);
      return redeemed.ok ? done({ ...redeemed.value, provenance }) : redeemed;
    },
  };
}
