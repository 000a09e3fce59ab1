import { z } from 'zod';
import { requestAndShow } from '../../client/request.ts';
import { defineCommand, positional } from '../../command.ts';
import { redemptionsPath } from './checkout.ts';

export const command = defineCommand({
  command: 'void <order>',
  describe: 'Undo a redemption after a refund',
  builder: { order: positional('The order that was refunded') },
  examples: [['latchkey coupon void order-1017', 'its use no longer counts']],
  handler: async (args, output) => {
    const { order } = args;
    const call = { method: 'DELETE', path: `${redemptionsPath}/${encodeURIComponent(order)}` } as const;
    const show = (): string => `Coupon use of order ${order} was undone`;
    return await requestAndShow(args, output, call, { schema: z.null(), show });
  },
});
