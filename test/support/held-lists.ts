import type { Applied, Outcome } from '../../src/domain/outbox/outcome.ts';
import type { Page } from '../../src/domain/page.ts';
import type { CouponPage } from '../../src/service/ports.ts';

const nothing: CouponPage = { coupons: [], unreadable: [] };

/**
 * The lists of an upstream whose answers a test gives: the first request of each waits for it, and what is asked for
 * to make sure that there is no more is answered by what it gave.
 */
export class HeldLists {
  /** Whether the test answers those requests too. */
  byPage = false;
  /** What the list that is being read has shown, until it is read again. */
  #shown: Applied<CouponPage> | null = null;

  /** `held`: asks the test. */
  async answer(
    { offset }: Pick<Page, 'offset'>,
    held: () => Promise<Outcome<CouponPage>>,
  ): Promise<Outcome<CouponPage>> {
    const shown = this.#shown;
    if (shown !== null) {
      if (offset > 0) return { ...shown, value: nothing };
      this.#shown = null;
      return shown;
    }
    const outcome = await held();
    if (this.byPage || outcome.outcome !== 'applied') return outcome;
    const { coupons, unreadable } = outcome.value;
    if (coupons.length + unreadable.length > 0) this.#shown = outcome;
    return outcome;
  }
}
