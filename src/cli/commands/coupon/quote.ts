import { defineRequest } from '../../client/request.ts';
import { positional } from '../../command.ts';
import { exitCode } from '../../exit-code.ts';
import { cartOptions, formatQuote, readItem } from './checkout.ts';
import { quoteObject } from '../../../wire/checkout.ts';

export const command = defineRequest({
  command: 'quote <code> <items..>',
  describe: 'Show the discount of a coupon for a cart',
  builder: { code: positional('What the customer entered'), ...cartOptions },
  examples: [
    ['latchkey coupon quote SPRING RGsF=19.99x2 Ab12=500c', 'two pieces for 19.99 each, and one for 5.00'],
  ],
  request: ({ code, items, currency }) => ({
    method: 'POST',
    path: '/agent/v1/quote',
    json: { code, currency, items: items.map(readItem) },
  }),
  view: {
    schema: quoteObject,
    show: (quote) => formatQuote(quote),
    exitCode: ({ redeemable }) => (redeemable ? exitCode.done : exitCode.failed),
  },
});
