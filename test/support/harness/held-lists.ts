import type { Outcome } from '../../../src/domain/outbox/outcome.ts';
import type { Page } from '../../../src/domain/page.ts';
import type { CouponPage } from '../../../src/service/ports.ts';

/**
 * The coupon lists of an upstream whose responses a test provides. The first request of each listing waits
 * for the test. The next request, which checks for another page, gets an empty page.
 */
export class HeldLists {
  /** Whether the test also answers the requests for further pages. */
  byPage = false;
  #last: Outcome<CouponPage> | null = null;

  /** `held` waits for the test. */
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
