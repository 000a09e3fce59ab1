import { defineRequest } from '../../client/request.ts';
import { positional } from '../../command.ts';
import { couponPath, couponView } from './coupon.ts';

export const command = defineRequest({
  command: 'end <id>',
  describe: 'End a coupon now',
  builder: { id: positional('Coupon id', 'coupon') },
  examples: [['latchkey coupon end 7', 'it no longer applies; past redemptions stay']],
  request: ({ id }) => ({ method: 'POST', path: `${couponPath(id)}/end` }),
  view: couponView,
});
