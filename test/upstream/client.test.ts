import { expect, test } from 'vitest';
import type { Dispatcher } from 'undici';
import type { Keyed } from '../../src/service/ports.ts';
import { upstreamClientOver } from '../../src/upstream/client.ts';
import type { Exchange, Transport } from '../../src/upstream/exchange.ts';
import { buildTerms } from '../support/builders/coupon-builders.ts';
import { asSpecified, never } from '../support/harness/upstream-harness.ts';
import { VirtualTime } from '../support/harness/virtual-clock.ts';

const data = { license_key: 'KEY', enabled: true, product_link: 'p1', buyer_email: 'b@example.com' };
const text = JSON.stringify({ data: { ...data, uses: 1, date: '2025-12-01T00:00:00Z' } });
const dayMs = 86_400_000;

test('a response that shows that the clock is ahead is confirmed at its own date, not at the wrong time', async () => {
  const upstreamNow = Date.UTC(2026, 0, 1);
  const clock = new VirtualTime().clock({ wall: upstreamNow });
  clock.jumpWall(60 * dayMs);
  const headers = { date: new Date(upstreamNow).toUTCString() };
  const transport: Transport = {
    send: () =>
      Promise.resolve({
        exchange: { type: 'answered', status: 200, headers, text },
        discard: () => undefined,
      }),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  const client = upstreamClientOver(
    transport,
    {
      baseUrl: 'https://upstream.example',
      apiKey: () => null,
      secretOf: () => 'secret',
      ...asSpecified,
      onDate: (date) => clock.hear(date),
    },
    clock,
  );
  const answer = await client.verify('p1', 'KEY', new AbortController().signal);
  expect(answer).toMatchObject({ outcome: 'applied', confirmedAt: upstreamNow });
});

const keyed: Keyed = {
  id: '019c8443-0000-7000-8000-000000000001',
  createdAt: 1_767_225_600_123,
  epoch: '0123456789abcdef'.repeat(2),
  isRepeat: true,
  seenRevision: 17,
};

/** A client, the requests that it sends, and the answer that each of them gets. */
function recording(
  answer: Pick<Extract<Exchange, { type: 'answered' }>, 'status' | 'text'>,
  headers: Record<string, string> = {},
) {
  const sent: Dispatcher.DispatchOptions[] = [];
  const transport: Transport = {
    send(request) {
      sent.push(request);
      return Promise.resolve({
        exchange: { type: 'answered', headers, ...answer },
        discard: () => undefined,
      });
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  const settings = {
    baseUrl: 'https://upstream.example/shop',
    apiKey: () => 'api-1',
    secretOf: () => 'secret',
    ...asSpecified,
  };
  return { sent, client: upstreamClientOver(transport, settings, new VirtualTime().clock()) };
}

test('a change to a Latchkey carries the id of its operation as its key, and when its caller asked', async () => {
  const { sent, client } = recording({ status: 200, text });
  const change = { productId: 'p1', licenseKey: 'KEY', kind: 'enable', requestId: 'r-1' } as const;
  await client.change(change, never());
  await client.change({ ...change, keyed }, never());
  const minimal: Keyed = { ...keyed, epoch: null, isRepeat: false, seenRevision: null };
  await client.change({ ...change, keyed: minimal }, never());
  const [plain, first, second] = sent;
  expect(plain?.headers).not.toHaveProperty('idempotency-key');
  expect(plain?.headers).not.toHaveProperty('latchkey-operation');
  expect(plain?.headers).toMatchObject({ accept: 'application/json' });
  expect(first).toEqual({
    ...plain,
    headers: {
      ...(plain?.headers as Record<string, string>),
      accept: 'application/json, application/problem+json',
      'idempotency-key': keyed.id,
      'latchkey-operation': `created=${keyed.createdAt}, epoch=${keyed.epoch}, repeat, seen=17`,
    },
  });
  expect(second?.headers).toMatchObject({ 'latchkey-operation': `created=${keyed.createdAt}` });
});

test('the terms of a license are read from a Latchkey, and in the answer of another store they are members like others', async () => {
  const members = { status: 'expired', expires_at: '2026-01-01T00:00:00Z', seats: 2, metadata: { a: 1 } };
  const license = { ...data, enabled: false, uses: 1, date: '2025-12-01T00:00:00Z', ...members };
  const answer = { status: 200, text: JSON.stringify({ data: license }) };
  const terms = {
    enabled: true,
    expiresAt: Date.UTC(2026, 0, 1),
    graceUntil: null,
    usesLimit: null,
    terms: { seats: 2, metadata: { a: 1 } },
  };
  const names = { 'latchkey-epoch': keyed.epoch ?? '', 'latchkey-instance': 'an-agent' };
  for (const [name, value] of Object.entries(names)) {
    const read = await recording(answer, { [name]: value }).client.verify('p1', 'KEY', never());
    expect(read).toMatchObject({ value: terms });
    expect(read).not.toHaveProperty('value.extra');
  }
  const read = await recording(answer).client.verify('p1', 'KEY', never());
  expect(read).toMatchObject({ value: { enabled: false, extra: members } });
  expect(read).not.toHaveProperty('value.expiresAt');
});

test('several uses at once are not sent to an upstream that counts one at a time', async () => {
  const { sent, client } = recording({ status: 200, text });
  const change = { productId: 'p1', licenseKey: 'KEY', kind: 'usage', requestId: null, amount: 5 } as const;
  expect(await client.change(change, never())).toMatchObject({
    outcome: 'not_applied',
    reason: 'refused',
    detail: 'this upstream counts one use at a time, and not 5',
  });
  expect(sent).toEqual([]);
});

const cart = {
  code: 'SPRING',
  currency: 'USD',
  lines: [
    { productKey: 'press', amount: 1_000, quantity: 1, collectionIds: [], recurring: false },
    { productKey: 'book', amount: 500, quantity: 2, collectionIds: ['c1'], recurring: true },
  ],
};
const answered = {
  order: 'order/1',
  code: 'SPRING',
  coupon_id: 7,
  redeemable: true,
  reasons: [],
  subtotal: 2_000,
  eligible_subtotal: 1_000,
  discount: 100,
  total: 1_900,
  lines: [{ product_key: 'press', amount: 1_000, quantity: 1, discount: 100 }],
  redeemed_at: '2026-01-01T00:00:00Z',
  over_limit: true,
};

test('a redemption is sent with its order, its cart and the time at which its caller was answered', async () => {
  const { sent, client } = recording({ status: 201, text: JSON.stringify({ data: answered }) });
  const redemption = { order: 'order/1', cart, requestId: null, keyed };
  const outcome = await client.redeem({ ...redemption, answeredAt: Date.UTC(2026, 0, 1) }, never());
  expect(outcome).toMatchObject({
    outcome: 'applied',
    value: { isOverLimit: true, quote: { couponId: 7, discount: 100, lines: [{ productKey: 'press' }] } },
  });
  await client.redeem({ ...redemption, answeredAt: null }, never());
  expect(sent[0]).toMatchObject({
    method: 'POST',
    path: '/shop/agent/v1/redemptions',
    headers: {
      'content-type': 'application/json',
      'service-api-key': 'api-1',
      'idempotency-key': keyed.id,
    },
  });
  const [first, second] = sent.map(({ body }) => JSON.parse(body as string) as object);
  expect(first).toEqual({
    order: 'order/1',
    code: 'SPRING',
    currency: 'USD',
    items: [
      { product_key: 'press', amount: 1_000 },
      { product_key: 'book', amount: 500, quantity: 2, collection_ids: ['c1'], recurring: true },
    ],
    answered_at: '2026-01-01T00:00:00+00:00',
  });
  expect(second).not.toHaveProperty('answered_at');
});

test('the answer about another order does not say what became of a redemption', async () => {
  const { client } = recording({ status: 201, text: JSON.stringify({ data: answered }) });
  const outcome = await client.redeem(
    { order: 'order/2', cart, answeredAt: null, requestId: null, keyed },
    never(),
  );
  expect(outcome).toMatchObject({ outcome: 'ambiguous' });
});

test.each([
  [204, ''],
  [200, '{}'],
])('a %i of a gateway does not say that a void was carried out', async (status, body) => {
  const { client } = recording({ status, text: body });
  const outcome = await client.voidRedemption({ order: 'order/1', requestId: null, keyed }, never());
  expect(outcome).toMatchObject({ outcome: 'ambiguous' });
});

test('a void is sent under its key, and an empty 204 of a Latchkey says that it was carried out', async () => {
  const { sent, client } = recording({ status: 204, text: '' }, { 'latchkey-epoch': keyed.epoch ?? '' });
  const outcome = await client.voidRedemption({ order: 'order/1', requestId: null, keyed }, never());
  expect(outcome).toMatchObject({ outcome: 'applied', value: null });
  expect(sent[0]).toMatchObject({
    method: 'DELETE',
    path: '/shop/agent/v1/redemptions/order%2F1',
    headers: { 'idempotency-key': keyed.id },
  });
  expect(sent[0]).not.toHaveProperty('body');
});

test('an agent that has taken a keyed creation may answer with a provisional id, and no other answer may', async () => {
  const coupon = {
    id: -7,
    coupon_type: 'multi',
    percent_off: 20,
    code: 'SPRING',
    start_date: null,
    end_date: null,
    minimum_purchase_amount: null,
    usage_limit: null,
  };
  const { client } = recording({ status: 201, text: JSON.stringify({ data: coupon }) });
  const terms = buildTerms({ code: 'SPRING' });
  const taken = await client.createCoupon(terms, { requestId: null, keyed }, never());
  expect(taken).toMatchObject({ outcome: 'applied', value: { id: -7 } });
  const created = await client.createCoupon(terms, { requestId: null }, never());
  expect(created).toMatchObject({ outcome: 'ambiguous', detail: expect.stringContaining('provisional') });
});
