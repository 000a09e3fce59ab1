import { expect, test } from 'vitest';
import { plainUpstreamOver } from '../../src/upstream/plain-upstream.ts';
import type { Transport } from '../../src/upstream/exchange.ts';
import { asSpecified } from '../support/harness/upstream-harness.ts';
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
  const client = plainUpstreamOver(
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
