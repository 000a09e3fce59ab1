import { describe, expect, it, vi } from 'vitest';
import type { Coupon } from '../../src/domain/checkout/coupon.ts';
import { buildTerms } from '../support/builders/coupon-builders.ts';
import { createManualHarness, never, type ManualHarness } from '../support/harness/manual-harness.ts';
import { lost, minute, no, second, valueOf } from '../support/harness/service-harness.ts';

describe('uncertain coupons whose listing was not admitted', () => {
  it.each([
    [
      'asks to wait',
      (harness: ManualHarness) => harness.sync.limiter.waitUntil(harness.clock.monotonic() + 10 * second),
    ],
    [
      'refuses the API key',
      (harness: ManualHarness) => {
        const refused = no('unauthorized');
        harness.sync.limiter.observe({ ...refused, status: 401 }, { owner: null, subject: 'coupons' });
        void harness.clock.sleep(10 * second, never).then(() => harness.sync.limiter.retryCredentials());
      },
    ],
  ])(
    'uncertain coupons are looked for as soon as the listing is admitted, where the upstream %s',
    async (_, hinder) => {
      await using harness = await createManualHarness({ uses: 5 });
      const ids = [await createDoubt(harness, 'SPRING'), await createDoubt(harness, 'AUTUMN')];
      await harness.passes(minute);
      void harness.sync.coupons.list(never);
      await harness.time.settle();
      const [listing] = harness.arrivedCoupons.splice(0);
      harness.sync.delivery.run(harness.ending.signal).catch(() => undefined);
      await harness.time.settle();
      hinder(harness);
      const looks = vi.spyOn(harness.store.operations, 'due');
      if (listing?.kind !== 'list') throw new Error('nothing was listed');
      await listing.answer(lost);
      await harness.passes(10 * second - 1);
      expect(harness.arrivedCoupons).toEqual([]);
      expect(looks.mock.calls.length).toBeLessThan(10);
      await harness.passes(second);
      // The second waits for the listing of the first, which may have been answered before the end of the reconcile delay.
      for (let count = 0; count < ids.length; count += 1) {
        const [asked, ...others] = harness.arrivedCoupons.splice(0);
        if (asked?.kind !== 'list' || others.length > 0) throw new Error('not one listing was asked for');
        await asked.answer({
          outcome: 'applied',
          value: { coupons: ids.map(({ coupon }) => coupon), unreadable: [] },
          confirmedAt: harness.now,
          isCached: false,
        });
        await harness.time.settle();
      }
      expect(ids.map(({ id }) => harness.stateOf(id))).toEqual(['delivered', 'delivered']);
    },
  );
});

/** A creation whose response was lost, after many failures. */
async function createDoubt(harness: ManualHarness, code: string): Promise<{ id: string; coupon: Coupon }> {
  const terms = buildTerms({ code });
  const queued = await harness.writer.write('queueCoupon', { terms, isSentNow: true, maxPending: 10 });
  const { operationId } = valueOf(queued);
  const answer = { operationId, outcome: lost, caller: null, policy: harness.policy };
  valueOf(await harness.writer.write('recordCouponResponse', answer));
  const operation = harness.operation(operationId);
  harness.store.operations.put({ ...operation, failures: 20 });
  return { id: operationId, coupon: { ...terms, id: code.length + code.charCodeAt(0) } };
}
