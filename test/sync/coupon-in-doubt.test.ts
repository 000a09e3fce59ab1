import { describe, expect, it, vi } from 'vitest';
import type { Coupon } from '../../src/domain/checkout/coupon.ts';
import { givenTerms } from '../support/given/coupon-given.ts';
import { givenManual, never, type ManualStage } from '../support/stage/manual-stage.ts';
import { lost, minute, no, second, valueOf } from '../support/stage/service-stage.ts';

describe('coupons whose creation is in doubt while a listing of theirs is not admitted', () => {
  it.each([
    ['asks to wait', (stage: ManualStage) => stage.sync.uplink.waitUntil(stage.clock.steady() + 10 * second)],
    [
      'refuses the API key',
      (stage: ManualStage) => {
        const refused = no('unauthorized');
        stage.sync.uplink.observe({ ...refused, status: 401 }, { owner: null, subject: 'coupons' });
        void stage.clock.sleep(10 * second, never).then(() => stage.sync.uplink.retryCredentials());
      },
    ],
  ])('are looked for as soon as that is over, where the upstream %s', async (_, hinder) => {
    await using stage = await givenManual({ uses: 5 });
    const ids = [await givenDoubt(stage, 'SPRING'), await givenDoubt(stage, 'AUTUMN')];
    await stage.passes(minute);
    void stage.sync.coupons.list(never);
    await stage.time.settle();
    const [listing] = stage.arrivedCoupons.splice(0);
    stage.sync.push.run(stage.ending.signal).catch(() => undefined);
    await stage.time.settle();
    hinder(stage);
    const looks = vi.spyOn(stage.store.operations, 'due');
    if (listing?.kind !== 'list') throw new Error('nothing was listed');
    await listing.answer(lost);
    await stage.passes(10 * second - 1);
    expect(stage.arrivedCoupons).toEqual([]);
    expect(looks.mock.calls.length).toBeLessThan(10);
    await stage.passes(second);
    // The second waits for the listing of the first: this listing may have been answered before the fence was over.
    for (let count = 0; count < ids.length; count += 1) {
      const [asked, ...others] = stage.arrivedCoupons.splice(0);
      if (asked?.kind !== 'list' || others.length > 0) throw new Error('not one listing was asked for');
      await asked.answer({
        outcome: 'applied',
        value: { coupons: ids.map(({ coupon }) => coupon), unreadable: [] },
        confirmedAt: stage.now,
        isCached: false,
      });
      await stage.time.settle();
    }
    expect(ids.map(({ id }) => stage.stateOf(id))).toEqual(['delivered', 'delivered']);
  });
});

/** A creation whose answer was lost, after many failures. */
async function givenDoubt(stage: ManualStage, code: string): Promise<{ id: string; coupon: Coupon }> {
  const terms = givenTerms({ code });
  const queued = await stage.writer.write('queueCoupon', { terms, isSentNow: true, maxPending: 10 });
  const { operationId } = valueOf(queued);
  const answer = { operationId, outcome: lost, caller: null, policy: stage.policy };
  valueOf(await stage.writer.write('recordCouponAnswer', answer));
  const operation = stage.operation(operationId);
  stage.store.operations.put({ ...operation, failures: 20 });
  return { id: operationId, coupon: { ...terms, id: code.length + code.charCodeAt(0) } };
}
