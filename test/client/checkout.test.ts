import { createServer } from 'node:http';
import { expect, it } from 'vitest';
import { AgentUnavailableError, connect, type LatchkeyClient } from '../../src/client/index.ts';
import { listen } from '../support/network/listener.ts';

const cart = { code: 'MAY', items: [{ productKey: 'P', amount: 1_000 }] };
const line = { product_key: 'P', amount: 1_000, quantity: 2, discount: 100 };
const quote = {
  code: 'MAY',
  coupon_id: 7,
  redeemable: false,
  reasons: ['ended', 'minimum_not_met'],
  subtotal: 3_000,
  eligible_subtotal: 2_000,
  discount: 100,
  total: 2_900,
  lines: [line],
};
const redemption = {
  ...quote,
  redeemable: true,
  reasons: [],
  order: 'order-1',
  redeemed_at: '2026-05-01T00:00:00Z',
};

/** What `call` makes of an agent that answers with this. */
async function answered<Value>(
  data: object,
  call: (program: LatchkeyClient) => Promise<Value>,
): Promise<Value> {
  const server = createServer((_, response) => response.end(JSON.stringify({ data })));
  await using agent = await listen(server);
  return await call(connect({ url: agent.url, apiKey: 'the-key' }));
}

it('a quote has every member of the response, including the reasons why it is not redeemable', async () => {
  expect(await answered(quote, (program) => program.quote(cart))).toEqual({
    code: 'MAY',
    couponId: 7,
    redeemable: false,
    reasons: ['ended', 'minimum_not_met'],
    subtotal: 3_000,
    eligibleSubtotal: 2_000,
    discount: 100,
    total: 2_900,
    items: [{ productKey: 'P', amount: 1_000, quantity: 2, discount: 100 }],
    // The authority itself answers: it names no scope.
    scope: 'everywhere',
  });
});

it('a redemption has the time at which the order redeemed the coupon', async () => {
  expect(await answered(redemption, (program) => program.redeem('order-1', cart))).toMatchObject({
    order: 'order-1',
    redeemedAt: new Date('2026-05-01T00:00:00Z'),
    redeemable: true,
  });
});

it.each([
  ['code', undefined],
  ['redeemable', 'yes'],
  ['reasons', 'ended'],
  ['subtotal', '3000'],
  ['eligible_subtotal', undefined],
  ['discount', null],
  ['total', '29.00'],
  ['lines', null],
  ['lines', [{ ...line, product_key: undefined }]],
  ['lines', [line, { ...line, amount: '1000' }]],
  ['lines', [{ ...line, quantity: undefined }]],
  ['lines', [{ ...line, discount: null }]],
])('a response is not a quote if its %s is %j', async (name, value) => {
  const asked = answered({ ...quote, [name]: value }, (program) => program.quote(cart));
  await expect(asked).rejects.toThrow(AgentUnavailableError);
  await expect(asked).rejects.toMatchObject({ idempotencyKey: null, mayHaveCounted: false });
});

it.each([
  ['total', undefined],
  ['order', 7],
  ['redeemed_at', null],
  ['redeemed_at', 'yesterday'],
])('a response is not a redemption, which may have counted anyway, if its %s is %j', async (name, value) => {
  const asked = answered({ ...redemption, [name]: value }, (program) =>
    program.redeem('order-1', cart, { idempotencyKey: 'one' }),
  );
  await expect(asked).rejects.toMatchObject({
    message: 'Cannot read the response: is this a Latchkey agent?',
    idempotencyKey: 'one',
    mayHaveCounted: true,
  });
});
