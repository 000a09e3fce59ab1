import { request, requestAndShow } from '../../client/request.ts';
import { defineCommand, positional, textOption, UsageError } from '../../command.ts';
import { readCents } from '../../money.ts';
import { printDates, readDates } from '../../values.ts';
import { couponPath, couponsPath, couponView, termOptions, warnOfPast } from './coupon.ts';
import { couponObject } from '../../../wire/coupon.ts';

/** The value that removes a date, limit or note. */
const none = 'none';

/** Reads the coupon first, because the daemon takes it whole. */
export const command = defineCommand({
  command: 'update <id>',
  describe: 'Change the dates, limits and notes of a coupon',
  builder: {
    id: positional('Coupon id', 'coupon'),
    ...termOptions,
    code: textOption('Only if it was never redeemed'),
    'percent-off': textOption('Only if it was never redeemed'),
    'amount-off': textOption('Such as 5.00 or 500c (cents); only if it was never redeemed'),
  },
  examples: [
    ['latchkey coupon update 7 --end-date 2026-12-31', 'until the end of that day in UTC'],
    ['latchkey coupon update 7 --usage-limit none', 'none removes a date, limit or note'],
  ],
  handler: async (args, output) => {
    if (args.percentOff !== undefined && args.amountOff !== undefined) {
      throw new UsageError('--percent-off and --amount-off cannot be combined');
    }
    const { startDate, endDate } = args;
    const { dates, plainDates } = readDates(
      { 'start-date': ignoreNone(startDate), 'end-date': ignoreNone(endDate) },
      { 'start-date': 'start', 'end-date': 'end' },
      'after',
    );
    const least = ignoreNone(args.minimumPurchaseAmount);
    const minimum =
      least === undefined || least === ''
        ? undefined
        : String(readCents('--minimum-purchase-amount ', least));
    const changes = {
      ...textChange('start_date', startDate, dates['start-date']),
      ...textChange('end_date', endDate, dates['end-date']),
      ...textChange('usage_limit', args.usageLimit),
      ...textChange('minimum_purchase_amount', args.minimumPurchaseAmount, minimum),
      ...textChange('notes', args.notes),
      // A coupon always has a code, and the code may be "none".
      ...(args.code !== undefined && { code: args.code }),
      ...(args.percentOff !== undefined && { percent_off: args.percentOff, amount_off: null }),
      ...(args.amountOff !== undefined && {
        amount_off: readCents('--amount-off ', args.amountOff),
        percent_off: null,
      }),
    };
    if (Object.keys(changes).length === 0)
      throw new UsageError('Give something to change, such as --end-date');
    const path = `${couponsPath}/${encodeURIComponent(args.id)}`;
    const { id: _id, ...terms } = (await request(args, { path }, couponObject)).data;
    printDates(plainDates, output);
    const view = { ...couponView, exitCode: warnOfPast(output) };
    const call = { method: 'PUT', path: couponPath(args.id), json: { ...terms, ...changes } } as const;
    return await requestAndShow(args, output, call, view);
  },
});

function ignoreNone(text: string | undefined): string | undefined {
  return text === none ? undefined : text;
}

/** The member of the coupon that an option changes; null removes the value. */
function textChange(
  member: string,
  text: string | undefined,
  value: string | undefined = text,
): Record<string, string | null> {
  if (text === undefined) return {};
  if (text === '')
    throw new UsageError(`--${member.replaceAll('_', '-')} is empty: use ${none} to remove the value`);
  return { [member]: text === none || value === undefined ? null : value };
}
