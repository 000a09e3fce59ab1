import type { Page } from '../../domain/page.ts';
import type { Redemption } from '../../domain/checkout/redemption.ts';

/** `id`: the sort key of lists. */
export type ListedRedemption = Redemption & { id: number };

/** The coupons that orders have used. On an agent, all belong to the default account. */
export interface RedemptionReads {
  get(accountId: string, order: string): Redemption | null;
  /** The cost does not depend on the count. */
  countOf(accountId: string, couponId: number): number;
  /** Oldest first. */
  listOf(accountId: string, couponId: number, page: Page): ListedRedemption[];
  /** Newest first. */
  ordersOf(accountId: string, couponId: number, limit: number): string[];
}
export interface RedemptionTable extends RedemptionReads {
  add(accountId: string, redemption: Redemption): void;
  /** Returns false if there was none. */
  remove(accountId: string, order: string): boolean;
  renumberCoupon(accountId: string, from: number, to: number): void;
}
