import { requestAndShow } from '../../client/request.ts';
import { defineCommand, textOption } from '../../command.ts';
import { readCents } from '../../money.ts';
import { printDates, readDates } from '../../values.ts';
import { couponsPath, couponView, termOptions, warnOfPast } from './coupon.ts';

export const command = defineCommand({
  command: 'create',
  describe: 'Create a coupon',
  builder: {
    code: { ...textOption('What the customer enters'), demandOption: true },
    type: {
      choices: ['single', 'multi', 'collection'],
      demandOption: true,
      describe: 'Applies to one product, all products or a collection',
    },
    'percent-off': textOption('Percentage, above 0 and at most 100'),
    'amount-off': textOption('Discount, such as 5.00 or 500c (cents)'),
    product: textOption('Product key, with --type single', 'product'),
    collection: textOption('Collection id, with --type collection', 'collection'),
    ...termOptions,
  },
  examples: [
    ['latchkey coupon create --code SPRING --type multi --percent-off 20', '20 % off everything'],
    [
      'latchkey coupon create --code FIVE --type single --product RGsF --amount-off 5.00',
      '5.00 off a product',
    ],
  ],
  handler: async (args, output) => {
    const { dates, plainDates } = readDates(
      { 'start-date': args.startDate, 'end-date': args.endDate },
      { 'start-date': 'start', 'end-date': 'end' },
      'after',
    );
    printDates(plainDates, output);
    const form = {
      code: args.code,
      coupon_type: args.type,
      percent_off: args.percentOff,
      amount_off: args.amountOff === undefined ? undefined : readCents('--amount-off ', args.amountOff),
      product_key: args.product,
      collection_id: args.collection,
      usage_limit: args.usageLimit,
      minimum_purchase_amount:
        args.minimumPurchaseAmount === undefined
          ? undefined
          : readCents('--minimum-purchase-amount ', args.minimumPurchaseAmount),
      start_date: dates['start-date'],
      end_date: dates['end-date'],
      notes: args.notes,
    };
    const view = { ...couponView, exitCode: warnOfPast(output) };
    return await requestAndShow(args, output, { method: 'POST', path: couponsPath, form }, view);
  },
});
