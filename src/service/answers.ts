import type { Coupon, CouponTerms, CouponFilter } from '../domain/checkout/coupon.ts';
import type { Tenant } from '../domain/access/principal.ts';
import type { Cart, Quote } from '../domain/checkout/quote.ts';
import type { License, LicenseTrigger } from '../domain/license.ts';
import type { Result } from '../domain/problem/problem.ts';
import type { Freshness } from '../domain/agent/freshness.ts';
import type { RedeemCoupon, RedeemedCoupon } from './checkout/redemption.ts';
import type { HistoryPage, ListedChange } from './access/tables.ts';
import type { Idempotency, WriteOptions } from './ports.ts';
import type { Page } from '../domain/page.ts';

/** How much an answer is worth; the headers of an agent's answer are made from it. Times are epoch ms. */
export type Provenance =
  | { freshness: 'authoritative' }
  | {
      freshness: Exclude<Freshness, 'authoritative'>;
      confirmedAt: number | null;
      graceUntil: number | null;
      /** Local changes of this record that the upstream has not confirmed. */
      pending: number;
      /** Whether the upstream was asked for this very answer. */
      cache: 'hit' | 'miss';
      ageMs: number;
    };

/** The same response may be sent again until a commit changes the license. */
export type Cacheable = {
  /** The first and the last instant at which the response is right (`Clock.now`, which may go back). */
  since: number;
  until: number;
  /** Call it each time that the cached response is sent. */
  onServed(): void;
};

export type LicenseResponse = {
  license: License;
  /** The product under which it is known here; on an agent as configured, whatever link the upstream writes. */
  productKey: string;
  provenance: Provenance;
  /** Absent: the response must not be sent again. */
  cacheable?: Cacheable;
};

export type LicenseHistory = { changes: readonly ListedChange[]; total: number };

export type LicenseChangeRequest = {
  tenant: Tenant;
  licenseKey: string;
  trigger: Exclude<LicenseTrigger, 'refund'>;
  /** Who asks (`Principal.credential`), for the history of the license. */
  actor: string | null;
  /** Kept with the operation that carries the change upward. */
  requestId?: string | null;
  idempotency: Idempotency | null;
  /** How long the caller will wait for the upstream's confirmation (`Prefer: wait`), in ms. */
  waitMs: number;
  /** Whether another agent asks, which may wait for this answer no longer than this one does for its upstream's. */
  isAgent?: boolean;
  /** The credential that asks (`Principal.credential`). Null or absent: look-ups at the upstream are not limited. */
  requester?: string | null;
};

/** The license half of the interface, in either role. `licenseKey` is already in its stored form. */
export interface Licensing {
  verify(
    tenant: Tenant,
    licenseKey: string,
    signal: AbortSignal,
    requester?: string | null,
  ): Promise<Result<LicenseResponse>>;
  change(request: LicenseChangeRequest, signal: AbortSignal): Promise<Result<LicenseResponse>>;
  /** What has changed a license, the latest first; refused when nothing is known of it here. Null: it may be anybody's. */
  history(tenant: Tenant | null, licenseKey: string, page: HistoryPage): Promise<Result<LicenseHistory>>;
}

export type CouponResponse = { coupon: Coupon; provenance: Provenance };
export type CouponList = { coupons: readonly Coupon[]; total: number; provenance: Provenance };

/** The coupon half of the interface, in either role. */
export interface Couponing {
  create(
    accountId: string,
    terms: CouponTerms,
    writeOptions: WriteOptions,
    signal: AbortSignal,
  ): Promise<Result<CouponResponse>>;
  list(accountId: string, query: Page & CouponFilter, signal: AbortSignal): Promise<Result<CouponList>>;
  get(accountId: string, id: number, signal: AbortSignal): Promise<Result<CouponResponse>>;
}

export type QuoteResponse = { quote: Quote; provenance: Provenance };
export type RedemptionResponse = RedeemedCoupon & { provenance: Provenance };

/** Coupons at checkout, in either role; what was redeemed is in the store. */
export interface Checkout {
  quote(accountId: string, cart: Cart, signal: AbortSignal): Promise<Result<QuoteResponse>>;
  redeem(
    command: RedeemCoupon,
    writeOptions: WriteOptions,
    signal: AbortSignal,
  ): Promise<Result<RedemptionResponse>>;
}
