import type { Page } from '../../domain/page.ts';
import type { Redemption } from '../../domain/checkout/redemption.ts';

/** A redemption with the number by which lists are sorted. */
export type ListedRedemption = Redemption & { id: number };

/** The coupons that orders have used; on an agent all are of the default account. */
export interface RedemptionReads {
  get(accountId: string, order: string): Redemption | null;
  /** How often a coupon is redeemed now; costs the same however often that is. */
  countOf(accountId: string, couponId: number): number;
  /** The redemptions of a coupon, oldest first. */
  listOf(accountId: string, couponId: number, page: Page): ListedRedemption[];
  /** The orders that redeemed a coupon, newest first. */
  ordersOf(accountId: string, couponId: number, limit: number): string[];
}
export interface RedemptionTable extends RedemptionReads {
  add(accountId: string, redemption: Redemption): void;
  /** Tells whether there was one. */
  remove(accountId: string, order: string): boolean;
  /** The same coupon has another id from now on. */
  renumberCoupon(accountId: string, from: number, to: number): void;
}
