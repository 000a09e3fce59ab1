import { defineList } from '../../client/request.ts';
import { textOption } from '../../command.ts';
import { instant } from '../../format.ts';
import {
  countedCouponsPath,
  formatCount,
  formatDiscount,
  formatScope,
  formatState,
  isProvisional,
} from './coupon.ts';
import { leftOutHeader } from '../../../domain/header-names.ts';
import { counted } from '../../../domain/text.ts';
import { countedCouponObject } from '../../../wire/coupon.ts';

export const command = defineList({
  command: 'list',
  describe: 'List coupons',
  builder: {
    code: textOption('Only the coupon with this code'),
    product: textOption('Only of this product', 'product'),
    state: { choices: ['scheduled', 'active', 'used_up', 'ended'], describe: 'Only in this state' },
  },
  examples: [['latchkey coupon list --state active', 'the coupons that apply now']],
  list: {
    path: countedCouponsPath,
    member: 'coupons',
    item: countedCouponObject,
    warning: ({ headers }) => {
      const leftOut = Number(headers[leftOutHeader.toLowerCase()] ?? 0);
      const coupons = counted(leftOut, 'coupon');
      return leftOut > 0 ? `${coupons} of the store cannot be read and are left out; the log says why` : null;
    },
    row: (each) => ({
      id: each.id,
      code: each.code,
      state: isProvisional(each) ? `${formatState(each.state)}, provisional` : formatState(each.state),
      off: formatDiscount(each),
      for: formatScope(each),
      until: instant(each.end_date),
      redeemed: formatCount(each),
    }),
  },
  query: ({ code, product, state }) => ({ code, product_key: product, state }),
});
