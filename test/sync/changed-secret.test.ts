import { expect, it } from 'vitest';
import { createManualHarness, key, never, productKey } from '../support/harness/manual-harness.ts';
import { no, second, valueOf } from '../support/harness/service-harness.ts';
import { buildTerms } from '../support/builders/coupon-builders.ts';

const refused = no('unauthorized');

it('a rejection of the old secret that arrives after a reload does not stop requests with the new secret', async () => {
  await using harness = await createManualHarness();
  const { limiter } = harness.sync;
  harness.sync.delivery.run(harness.ending.signal).catch(() => undefined);
  // A read, and a use on its way.
  harness.sync.fetcher.refresh(productKey, 'OTHER');
  const read = await harness.request();
  await harness.change('usage');
  harness.sync.delivery.wake();
  const use = await harness.request();
  await harness.passes(second);
  limiter.retryCredentials();
  await read.answer(refused);
  await use.answer(refused);
  expect(limiter.status().pausedProducts).toEqual([]);
  harness.sync.fetcher.refresh(productKey, key);
  await harness.passes(second);
  limiter.observe(refused, { owner: productKey, subject: key });
  expect(limiter.status().pausedProducts).toEqual([productKey]);
});

it('a rejection of the old API key that arrives after a reload does not stop requests for coupons with the new key', async () => {
  await using harness = await createManualHarness();
  const { limiter, coupons } = harness.sync;
  const listing = coupons.list(never);
  await harness.time.settle();
  const command = { terms: buildTerms({ code: 'NEW' }), isSentNow: true, maxPending: 10 };
  const { operationId } = valueOf(await harness.writer.write('queueCoupon', command));
  const creating = coupons.create(operationId, { idempotency: null });
  await harness.time.settle();
  const requests = harness.arrivedCoupons.splice(0);
  expect(requests.map(({ kind }) => kind)).toEqual(['list', 'create']);
  await harness.passes(second);
  limiter.retryCredentials();
  for (const request of requests) await request.answer(refused);
  await Promise.all([listing, creating]);
  expect(limiter.status().couponsPaused).toBe(false);
});
