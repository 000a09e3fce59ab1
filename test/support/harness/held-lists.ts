import type { Outcome } from '../../../src/domain/outbox/outcome.ts';
import type { Page } from '../../../src/domain/page.ts';
import type { CouponPage } from '../../../src/service/ports.ts';

/**
 * The lists of an upstream whose answers a test gives: the first request of each waits for it, and the next, which makes
 * sure that there is no more, brings nothing.
 */
export class HeldLists {
  /** Whether the test answers these requests, too. */
  byPage = false;
  #last: Outcome<CouponPage> | null = null;

  /** `held`: asks the test. */
  async answer(
    { offset }: Pick<Page, 'offset'>,
    held: () => Promise<Outcome<CouponPage>>,
  ): Promise<Outcome<CouponPage>> {
    if (!this.byPage && offset > 0 && this.#last?.outcome === 'applied') {
      return { ...this.#last, value: { coupons: [], unreadable: [] } };
    }
    this.#last = await held();
    return this.#last;
  }
}
