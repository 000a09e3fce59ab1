import { afterAll, beforeAll, expect, test } from 'vitest';
import { issuedKey } from '../../leases/support/issuer-harness.ts';
import { buyerEmail, BuyersShop, textOf } from '../support/shop.ts';

const opened = new AsyncDisposableStack();
let shop: BuyersShop;
beforeAll(async () => {
  shop = opened.use(await new BuyersShop().open());
});
afterAll(() => opened.disposeAsync());

test('an address can send 40 forms, and then one in two seconds', async () => {
  const customer = shop.customer();
  for (let number = 0; number < 40; number += 1)
    expect((await customer.open(`guess ${number}`)).status).toBe(404);
  const limited = await customer.open(issuedKey);
  expect([limited.status, limited.headers['retry-after']]).toEqual([429, '2']);
  expect(textOf(limited)).toContain('There were too many requests. Wait for one minute, and try again.');
  expect((await customer.get()).status).toBe(200);
  expect((await shop.customer().open(issuedKey)).status).toBe(200);
  shop.time.advance(2_000);
  expect((await customer.open(issuedKey)).status).toBe(200);
  expect((await customer.open(issuedKey)).status).toBe(429);
});

test('a form of an address over its limit is refused before it is read', async () => {
  const customer = shop.customer();
  for (let number = 0; number < 40; number += 1) await customer.open(`guess ${number}`);
  expect((await customer.post('/license', { license_key: 'x'.repeat(33 * 1024) })).status).toBe(429);
});

test('addresses cannot be guessed for a known license key, from however many places and in whatever spelling', async () => {
  const guess = async (number: number, email: string): Promise<number> => {
    const spelling = number % 2 === 0 ? issuedKey : ` ${issuedKey.toLowerCase()}`;
    return (await shop.customer().open(spelling, email)).status;
  };
  shop.time.advance(3_600_000);
  for (let number = 0; number < 20; number += 1)
    expect(await guess(number, `${number}@example.com`)).toBe(404);
  expect(await guess(20, buyerEmail)).toBe(429);
  shop.time.advance(60_000);
  expect(await guess(21, buyerEmail)).toBe(200);
});
