import { defineRequest } from '../../client/request.ts';
import { positional } from '../../command.ts';
import { couponPath, couponView, formatCoupon } from './coupon.ts';

export const command = defineRequest({
  command: 'delete <id>',
  describe: 'Delete a coupon that was never redeemed',
  builder: { id: positional('Coupon id', 'coupon') },
  examples: [['latchkey coupon delete 7', 'one that was created by mistake']],
  request: ({ id }) => ({ method: 'DELETE', path: couponPath(id) }),
  view: { ...couponView, show: (deleted) => ['deleted', formatCoupon(deleted)] },
});
