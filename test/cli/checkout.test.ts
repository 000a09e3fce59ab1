import { expect, test } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { startFakeDaemon } from '../support/process/fake-daemon.ts';

const quote = {
  code: 'SPRING',
  coupon_id: 7,
  redeemable: true,
  reasons: [],
  subtotal: 4498,
  eligible_subtotal: 3998,
  discount: 800,
  total: 3698,
  lines: [
    { product_key: 'RGsF', amount: 1999, quantity: 2, discount: 800 },
    { product_key: 'a=b', amount: 500, quantity: 1, discount: 0 },
  ],
};
const table = [
  'PRODUCT  PRICE  PIECES  OFF',
  'RGsF     19.99  2       8.00',
  'a=b      5.00   1       0.00',
  '',
];

test('coupon quote sends a cart and shows the discount of each line', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: quote } });
  const items = ['RGsF=19.99x2', 'a=b=500c@set,other'];
  const outcome = await latchkey('coupon', 'quote', 'spring', ...items, '--state-dir', daemon.stateDir);
  expect(outcome).toMatchObject({ code: 0, err: '' });
  expect(outcome.out.split('\n')).toEqual([
    'code        SPRING',
    'redeemable  yes',
    'subtotal    44.98',
    'discount    8.00',
    'total       36.98',
    '',
    ...table,
  ]);
  expect(daemon.received[0]?.line).toBe('POST /agent/v1/quote');
  expect(JSON.parse(daemon.received[0]?.body ?? '')).toEqual({
    code: 'spring',
    items: [
      { product_key: 'RGsF', amount: 1999, quantity: 2 },
      { product_key: 'a=b', amount: 500, quantity: 1, collection_ids: ['set', 'other'] },
    ],
  });
});

test('coupon quote reads a currency, quantities and keys with =', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: quote } });
  const argv = ['coupon', 'quote', 'spring', 'RGsF=1999cx12', 'a=1=5,00', '--currency', 'EUR'];
  expect((await latchkey(...argv, '--state-dir', daemon.stateDir)).code).toBe(0);
  expect(JSON.parse(daemon.received[0]?.body ?? '')).toEqual({
    code: 'spring',
    currency: 'EUR',
    items: [
      { product_key: 'RGsF', amount: 1999, quantity: 12 },
      { product_key: 'a=1', amount: 500, quantity: 1 },
    ],
  });
});

test('coupon quote exits with 1 if the coupon is refused, and names the counted redemptions', async () => {
  await using daemon = await startFakeDaemon();
  const refused = { ...quote, redeemable: false, reasons: ['ended', 'minimum_not_met'], scope: 'this_agent' };
  daemon.answer({ body: { data: refused } });
  const outcome = await latchkey('coupon', 'quote', 'SPRING', 'RGsF=1c', '--state-dir', daemon.stateDir);
  expect(outcome.code).toBe(1);
  expect(outcome.out).toMatch(/^redeemable +no: ended, minimum_not_met$/m);
  expect(outcome.out).toMatch(/^counted +the redemptions of this agent alone$/m);
});

test.each(['RGsF', 'RGsF=-1', '=5.00', 'RGsF=5.00x', 'RGsF=5.00@', 'RGsF=five'])(
  'coupon quote rejects the item %s',
  async (item) => {
    const outcome = await latchkey('coupon', 'quote', 'SPRING', item);
    expect(outcome.code).toBe(2);
    expect(outcome.err).toContain(`${item} is not a valid item`);
  },
);

test.each([
  ['RGsF=1999', 'RGsF=1999 could be money or cents: use 1999.00 or 1999c'],
  ['RGsF=20x2', 'RGsF=20 could be money or cents: use 20.00 or 20c'],
  ['RGsF=1.999', 'RGsF=1.999 is not an amount such as 5.00 or 500c'],
])('coupon quote and redeem ask for the unit of a price: %s', async (item, reason) => {
  for (const words of [
    ['quote', 'SPRING'],
    ['redeem', 'SPRING', 'order-1'],
  ]) {
    const outcome = await latchkey('coupon', ...words, item);
    expect(outcome.code).toBe(2);
    expect(outcome.err).toContain(reason);
  }
});

test('coupon redeem shows the order and the time', async () => {
  await using daemon = await startFakeDaemon();
  const redeemed_at = '2026-02-22T11:23:05+00:00';
  daemon.answer({ status: 201, body: { data: { ...quote, order: 'A-1', redeemed_at, over_limit: false } } });
  const argv = ['coupon', 'redeem', 'SPRING', 'A-1', 'RGsF=19.99x2', '--currency', 'EUR'];
  const outcome = await latchkey(...argv, '--state-dir', daemon.stateDir);
  expect(outcome).toMatchObject({ code: 0, err: '' });
  expect(outcome.out).toMatch(
    /^order +A-1\nredeemed +2026-02-22T11:23:05\+00:00 \(7 days ago\)\ncode +SPRING$/m,
  );
  expect(daemon.received[0]?.line).toBe('POST /agent/v1/redemptions');
  expect(JSON.parse(daemon.received[0]?.body ?? '')).toEqual({
    order: 'A-1',
    code: 'SPRING',
    currency: 'EUR',
    items: [{ product_key: 'RGsF', amount: 1999, quantity: 2 }],
  });
});

test('coupon void works for any order id, and accepts a response without a body', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ status: 204, body: '' });
  const outcome = await latchkey('coupon', 'void', 'A/1 é', '--state-dir', daemon.stateDir);
  expect(outcome).toEqual({ code: 0, err: '', out: 'Coupon use of order A/1 é was undone\n' });
  expect(daemon.received[0]?.line).toBe('DELETE /agent/v1/redemptions/A%2F1%20%C3%A9');
});
