import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { HttpResponse } from '../../../support/network/raw-http.ts';
import { buyersPage } from '../../../../src/features/buyers/http/page.ts';
import { Proxies } from '../../../../src/http/entry/client-address.ts';
import { openApp, serverOf } from '../../../support/app/http-app.ts';
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

/** A server with the page, whose clock stands still, so that no limit refills. `calls`: to the store. */
async function openGuessed(): Promise<{ calls: string[]; guess: (number: number) => Promise<number> }> {
  const calls: string[] = [];
  const app = opened.use(await openApp({}, (name) => calls.push(name)));
  const settings = { title: null, supportUrl: null, accent: '#1d4ed8', askEmail: true };
  const page = buyersPage(settings, () => 0);
  const listener = { public: { proxies: new Proxies([]), issuerHost: () => null } };
  const server = opened.adopt(serverOf(app.app, listener, [page]), (each) => each.close());
  const guess = async (number: number): Promise<number> => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const payload = `license_key=GUESS-${number}&email=eve@example.com`;
    return (await server.inject({ method: 'POST', url: '/license', headers, payload })).statusCode;
  };
  return { calls, guess };
}

test('a guess over a limit reads nothing from the store', async () => {
  const { calls, guess } = await openGuessed();
  for (let number = 0; number < 40; number += 1) expect(await guess(number)).toBe(404);
  expect(calls).toContain('reader.licenses.get');
  calls.length = 0;
  for (let number = 40; number < 10_000; number += 1) expect(await guess(number)).toBe(429);
  expect(calls).toEqual([]);
});

test('of many guesses at once, each waits for a turn of the event loop, so that a verify waits for one guess only', async () => {
  const { calls, guess } = await openGuessed();
  const answered: number[] = [];
  for (let number = 0; number < 80; number += 1) void guess(number).then((status) => answered.push(status));
  const turns: { read: number; refused: number }[] = [];
  while (answered.length < 80) {
    const [reads, refusals] = [countOf(calls, 'reader.licenses.get'), countOf(answered, 429)];
    await setImmediate();
    turns.push({
      read: countOf(calls, 'reader.licenses.get') - reads,
      refused: countOf(answered, 429) - refusals,
    });
  }
  expect([countOf(calls, 'reader.licenses.get'), countOf(answered, 429)]).toEqual([40, 40]);
  expect(turns.filter(({ read, refused }) => read + refused > 1)).toEqual([]);
});

function countOf<Value>(values: readonly Value[], counted: Value): number {
  return values.filter((value) => value === counted).length;
}
