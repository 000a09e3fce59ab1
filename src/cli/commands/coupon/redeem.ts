import { defineRequest } from '../../client/request.ts';
import { positional } from '../../command.ts';
import { instant } from '../../format.ts';
import { cartOptions, formatQuote, readItem, redemptionsPath } from './checkout.ts';
import { redemptionObject } from '../../../wire/checkout.ts';

export const command = defineRequest({
  command: 'redeem <code> <order> <items..>',
  describe: 'Redeem a coupon for an order, once',
  builder: {
    code: positional('What the customer entered'),
    order: positional('Your own id of the order that uses the coupon'),
    ...cartOptions,
  },
  examples: [
    ['latchkey coupon redeem SPRING order-1017 RGsF=19.99x2', 'safe to repeat: an order counts once'],
  ],
  request: ({ code, order, items, currency }) => ({
    method: 'POST',
    path: redemptionsPath,
    json: { order, code, currency, items: items.map(readItem) },
  }),
  view: {
    schema: redemptionObject,
    show: ({ order, redeemed_at: at, ...quote }) => formatQuote(quote, { order, redeemed: instant(at) }),
  },
});
