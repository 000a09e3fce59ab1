import { ask, defineRequest, inquire } from '../../client/ask.ts';
import { type Command, defineCommand, operand, textOption, UsageError } from '../../command.ts';
import { readDates, sayDates } from '../../instant.ts';
import { coupon, couponPath, formatCoupon, couponView, warnOfPast } from './coupon.ts';

/** Takes away what an option of `coupon update` sets. */
const nothing = 'none';

/** `coupon update`: reads it first, and changes what is given. */
export const updateCoupon: Command = defineCommand(
  (syntax) =>
    syntax
      .positional('id', operand('Coupon id', 'coupon'))
      .options({
        'start-date': textOption('A date (its start, UTC), a datetime, or a time from now, such as 24h'),
        'end-date': textOption('A date (its end, UTC), a datetime, or a time from now, such as 30d'),
        'usage-limit': textOption('How often it can be redeemed'),
        'minimum-purchase-amount': textOption('In cents'),
        notes: textOption('A note for yourself'),
        code: textOption('Only if it was never redeemed'),
        'percent-off': textOption('Only if it was never redeemed'),
        'amount-off': textOption('In cents; only if it was never redeemed'),
      })
      .example('latchkey coupon update 7 --end-date 2026-12-31', 'until the end of that day in UTC')
      .example('latchkey coupon update 7 --usage-limit none', 'none removes a date, limit or note'),
  async (args, output) => {
    if (args.percentOff !== undefined && args.amountOff !== undefined) {
      throw new UsageError('a coupon has either --percent-off or --amount-off, not both');
    }
    const path = pathOf(args.id);
    const edges = { 'start-date': 'start', 'end-date': 'end' } as const;
    const { startDate, endDate } = args;
    const { dates, taken } = readDates(
      { 'start-date': ignoreNothing(startDate), 'end-date': ignoreNothing(endDate) },
      edges,
      'after',
    );
    const changes = {
      ...textChange('start_date', startDate, dates['start-date']),
      ...textChange('end_date', endDate, dates['end-date']),
      ...textChange('usage_limit', args.usageLimit),
      ...textChange('minimum_purchase_amount', args.minimumPurchaseAmount),
      ...textChange('notes', args.notes),
      // A coupon always has a code, and it may be "none".
      ...(args.code !== undefined && { code: args.code }),
      ...(args.percentOff !== undefined && { percent_off: args.percentOff, amount_off: null }),
      ...(args.amountOff !== undefined && { amount_off: args.amountOff, percent_off: null }),
    };
    if (Object.keys(changes).length === 0) throw new UsageError('say what to change, such as --end-date');
    const asked = await inquire(args, { path: `${couponPath}/${encodeURIComponent(args.id)}` }, coupon);
    if (!asked.ok) return asked.complain(output);
    const { id: _id, ...terms } = asked.data;
    sayDates(taken, output);
    const view = { ...couponView, judge: warnOfPast(output) };
    return await ask(args, output, { method: 'PUT', path, json: { ...terms, ...changes } }, view);
  },
);

/** `coupon end`. */
export const endCoupon: Command = defineRequest(
  (syntax) =>
    syntax
      .positional('id', operand('Coupon id', 'coupon'))
      .example('latchkey coupon end 7', 'it no longer applies; past redemptions stay'),
  ({ id }) => ({ method: 'POST', path: `${pathOf(id)}/end` }),
  couponView,
);

/** `coupon delete`. */
export const deleteCoupon: Command = defineRequest(
  (syntax) =>
    syntax
      .positional('id', operand('Coupon id', 'coupon'))
      .example('latchkey coupon delete 7', 'one that was made by mistake'),
  ({ id }) => ({ method: 'DELETE', path: pathOf(id) }),
  { ...couponView, show: (deleted) => ['deleted', formatCoupon(deleted)] },
);

function pathOf(id: string): string {
  return `/admin/v1/coupons/${encodeURIComponent(id)}`;
}

function ignoreNothing(given: string | undefined): string | undefined {
  return given === nothing ? undefined : given;
}

/** The member that an option sets; null takes it away. */
function textChange(
  member: string,
  given: string | undefined,
  value: string | undefined = given,
): Record<string, string | null> {
  if (given === undefined) return {};
  if (given === '')
    throw new UsageError(`--${member.replaceAll('_', '-')} is empty: ${nothing} takes it away`);
  return { [member]: given === nothing || value === undefined ? null : value };
}
