import { afterAll, beforeAll, expect, test } from 'vitest';
import type { HttpResponse } from '../../../support/network/raw-http.ts';
import { issuedKey, otherKey } from '../../leases/support/issuer-harness.ts';
import { buyerEmail, BuyersShop, fieldsOf, textOf } from '../support/shop.ts';

const opened = new AsyncDisposableStack();
let shop: BuyersShop;
beforeAll(async () => {
  shop = opened.use(await new BuyersShop().open());
});
afterAll(() => opened.disposeAsync());

/** Sends forms until one is over a limit. The limits refill meanwhile, so the count is a minimum. */
async function untilLimited(
  send: (number: number) => Promise<HttpResponse>,
): Promise<{ sent: number; limited: HttpResponse }> {
  for (let sent = 0; sent < 1_000; sent += 1) {
    const answer = await send(sent);
    if (answer.status === 429) return { sent, limited: answer };
  }
  throw new Error('there is no limit');
}

test('an address can send 40 forms, and then one in two seconds', async () => {
  const customer = shop.customer();
  const { sent, limited } = await untilLimited((number) => customer.open(`guess ${number}`));
  expect(sent).toBeGreaterThanOrEqual(40);
  expect(limited.headers['retry-after']).toMatch(/^[12]$/);
  expect(textOf(limited)).toContain('There were too many requests. Wait for one minute, and try again.');
  expect((await customer.get()).status).toBe(200);
  expect((await shop.customer().open(issuedKey)).status).toBe(200);
  shop.time.advance(2_000);
  expect((await customer.open(issuedKey)).status).toBe(200);
});

test('all networks that a provider of IPv6 has given to one customer count as one', async () => {
  const customer = shop.customer();
  const send = async (address: string): Promise<HttpResponse> =>
    await customer.post('/license', { license_key: address }, { 'x-forwarded-for': address });
  const { sent } = await untilLimited((number) => send(`2001:db8:1:${number.toString(16)}::1`));
  expect(sent).toBeGreaterThanOrEqual(40);
  expect((await send('2001:db8:2::1')).status).toBe(404);
});

test('a form of an address over its limit is refused before it is read', async () => {
  const customer = shop.customer();
  const large = { license_key: 'x'.repeat(33 * 1024) };
  const { sent } = await untilLimited(() => customer.post('/license', large));
  expect(sent).toBeGreaterThanOrEqual(40);
});

test('one network cannot guess addresses for a known license key in any spelling, and does not lock out the buyer', async () => {
  const stranger = shop.customer();
  const spellings = [
    issuedKey,
    ` ${issuedKey.toLowerCase()}`,
    `Key: "${issuedKey}".`,
    issuedKey.replaceAll('-', ' '),
  ];
  const guess = async (number: number, email: string): Promise<number> =>
    (await stranger.open(spellings[number % spellings.length] ?? '', email)).status;
  shop.time.advance(3_600_000);
  for (let number = 0; number < 20; number += 1)
    expect(await guess(number, `${number}@example.com`)).toBe(404);
  expect(await guess(20, buyerEmail)).toBe(429);
  expect((await shop.customer().open(issuedKey)).status).toBe(200);
  shop.time.advance(60_000);
  expect(await guess(21, buyerEmail)).toBe(200);
});

test('many networks together cannot guess addresses for a known license key', async () => {
  shop.time.advance(3_600_000);
  const { sent } = await untilLimited((number) => shop.customer().open(issuedKey, `${number}@example.com`));
  expect(sent).toBeGreaterThanOrEqual(300);
});

test('all networks together can send 40 forms of an open page about a license, and then one in two seconds', async () => {
  shop.time.advance(3_600_000);
  const fields = fieldsOf(await shop.customer().open(issuedKey), '/license/answer');
  const { sent } = await untilLimited(() => shop.customer().post('/license/answer', fields));
  expect(sent).toBeGreaterThanOrEqual(40);
  const other = fieldsOf(await shop.customer().open(otherKey), '/license/answer');
  expect((await shop.customer().post('/license', other)).status).toBe(200);
  shop.time.advance(2_000);
  expect((await shop.customer().post('/license', fields)).status).toBe(200);
});
