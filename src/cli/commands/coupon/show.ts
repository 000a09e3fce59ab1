import { defineRequest } from '../../client/request.ts';
import { positional } from '../../command.ts';
import { countedCouponsPath, formatCount, formatCoupon, formatState } from './coupon.ts';
import { redeemedCouponObject } from '../../../wire/coupon.ts';

export const command = defineRequest({
  command: 'show <id>',
  describe: 'Show a coupon',
  builder: { id: positional('Coupon id', 'coupon') },
  examples: [['latchkey coupon show 7', 'and which orders redeemed it']],
  request: ({ id }) => ({ path: `${countedCouponsPath}/${encodeURIComponent(id)}` }),
  view: {
    schema: redeemedCouponObject,
    show: ({ orders, ...coupon }) =>
      formatCoupon(coupon, {
        state: formatState(coupon.state),
        redeemed: formatCount(coupon),
        'last by': orders.length === 0 ? null : orders.join(', '),
      }),
  },
});
