import { expect, it } from 'vitest';
import { givenManual, key, never, productKey } from '../support/stage/manual-stage.ts';
import { no, second, valueOf } from '../support/stage/service-stage.ts';
import { givenTerms } from '../support/given/coupon-given.ts';

const refused = no('unauthorized');

it('a refusal of the former secret, which comes after a reload, does not stop requests under the new one', async () => {
  await using stage = await givenManual();
  const { uplink } = stage.sync;
  stage.sync.push.run(stage.ending.signal).catch(() => undefined);
  // A read, and a use on its way.
  stage.sync.reads.refresh(productKey, 'OTHER');
  const read = await stage.request();
  await stage.change('usage');
  stage.sync.push.wake();
  const use = await stage.request();
  await stage.passes(second);
  uplink.retryCredentials();
  await read.answer(refused);
  await use.answer(refused);
  expect(uplink.status().pausedProducts).toEqual([]);
  stage.sync.reads.refresh(productKey, key);
  await stage.passes(second);
  uplink.observe(refused, { owner: productKey, subject: key });
  expect(uplink.status().pausedProducts).toEqual([productKey]);
});

it('a refusal of the former API key, which comes after a reload, does not stop coupons under the new one', async () => {
  await using stage = await givenManual();
  const { uplink, coupons } = stage.sync;
  const listing = coupons.list(never);
  await stage.time.settle();
  const command = { terms: givenTerms({ code: 'NEW' }), isSentNow: true, maxPending: 10 };
  const { operationId } = valueOf(await stage.writer.write('queueCoupon', command));
  const creating = coupons.create(operationId, { idempotency: null });
  await stage.time.settle();
  const requests = stage.arrivedCoupons.splice(0);
  expect(requests.map(({ kind }) => kind)).toEqual(['list', 'create']);
  await stage.passes(second);
  uplink.retryCredentials();
  for (const request of requests) await request.answer(refused);
  await Promise.all([listing, creating]);
  expect(uplink.status().couponsPaused).toBe(false);
});
