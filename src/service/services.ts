import type { Coupon, CouponTerms, CouponFilter } from '../domain/checkout/coupon.ts';
import type { Tenant } from '../domain/access/principal.ts';
import type { Cart, Quote } from '../domain/checkout/quote.ts';
import type { License, LicenseTrigger } from '../domain/license.ts';
import type { Result } from '../domain/problem/problem.ts';
import { type Freshness, freshnessAt, type FreshnessPolicy } from '../domain/agent/license-snapshot.ts';
import type { RedeemCoupon, RedeemedCoupon } from './checkout.ts';
import type { HistoryPage, ListedChange } from './tables.ts';
import type { Caller, Clock, Idempotency, Keyed, WriteOptions } from './ports.ts';
import type { Page } from '../domain/page.ts';

/** How current a response is; becomes the headers of an agent's response. Times are epoch ms. */
export type Provenance = { freshness: 'authoritative' } | AgentProvenance;

type AgentProvenance = {
  freshness: Exclude<Freshness, 'authoritative'>;
  confirmedAt: number | null;
  graceUntil: number | null;
  /** How many local changes of this record the upstream has not confirmed. */
  pending: number;
  /** `miss`: the upstream was asked for this response. */
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
  /** On an agent the configured product, whatever product link the upstream sends. */
  productKey: string;
  provenance: Provenance;
  /** The revision that this change has made; absent: none. */
  appliedRevision?: number;
  /** Absent: the response must not be sent again. */
  cacheable?: Cacheable;
};

export type CacheableResponse = LicenseResponse & { cacheable: Cacheable };

export type LicenseHistory = { changes: readonly ListedChange[]; total: number };

export type LicenseChangeRequest = {
  tenant: Tenant;
  licenseKey: string;
  trigger: Exclude<LicenseTrigger, 'refund'>;
  /** How many uses a `usage` counts, on an agent whose upstream takes more than 1 at a time; absent: 1. */
  amount?: number;
  /** The caller (`Principal.credential`), for the history of the license. */
  actor: string | null;
  /** Stored with the operation, and sent to the upstream. */
  requestId?: string | null;
  idempotency: Idempotency | null;
  /** How long the caller will wait for the upstream's confirmation (`Prefer: wait`), in ms. */
  waitMs: number;
  /** The wait also ends when an attempt fails, or when nothing can be sent now. */
  untilFailure?: boolean;
  /** A change that the upstream refuses while the caller waits is given up, and refused to the caller. */
  isRefusable?: boolean;
  /** The caller is another agent, whose timeout may be the same as this agent's. */
  isAgent?: boolean;
  /** Null or absent: look-ups at the upstream are not limited. */
  requester?: Caller | null;
  /** The caller is an agent that delivers an operation of its outbox. */
  keyed?: Keyed | null;
};

/** The license API of both roles. `licenseKey` is already in its stored form. */
export interface LicenseService {
  verify(
    tenant: Tenant,
    licenseKey: string,
    signal: AbortSignal,
    requester?: Caller | null,
  ): Promise<Result<LicenseResponse>>;
  /** The same answer as `verify`, if it needs nothing but a read of a store in this process; null: call `verify`. */
  verifyNow?(tenant: Tenant, licenseKey: string): CacheableResponse | null;
  /** Lets the next request for the key ask the upstream, although the upstream has just answered 404. */
  askAgain?(licenseKey: string): void;
  change(request: LicenseChangeRequest, signal: AbortSignal): Promise<Result<LicenseResponse>>;
  /** The changes of a license, latest first; a problem if the license is unknown. `tenant`: null for any tenant. */
  history(tenant: Tenant | null, licenseKey: string, page: HistoryPage): Promise<Result<LicenseHistory>>;
}

export type CouponResponse = { coupon: Coupon; provenance: Provenance };
export type CouponList = {
  coupons: readonly Coupon[];
  total: number;
  /** How many coupons of the upstream cannot be read and are left out. */
  leftOut: number;
  provenance: Provenance;
};

/** The coupon API of both roles. */
export interface CouponService {
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

/** Coupons at checkout, in both roles. */
export interface CheckoutService {
  quote(accountId: string, cart: Cart, signal: AbortSignal): Promise<Result<QuoteResponse>>;
  redeem(
    command: RedeemCoupon,
    writeOptions: WriteOptions,
    signal: AbortSignal,
  ): Promise<Result<RedemptionResponse>>;
  /** Voids the redemption of an order. */
  void(
    command: { accountId: string; order: string },
    writeOptions: WriteOptions,
    signal: AbortSignal,
  ): Promise<Result<unknown>>;
}

/** The settings of an agent that its services read at each request. */
export type AgentSettings = {
  freshness: FreshnessPolicy;
  /** `freshness.refresh`. */
  refreshMs: number;
  /** How long an agent waits until it asks the upstream again for unknown codes. */
  unknownMs: number;
  /** `sync.max_pending`. */
  maxPending: number;
  /** `upstream.timeout`: how long an enable, a coupon or a redemption waits for the upstream. */
  timeoutMs: number;
};

/**
 * The provenance of an agent's response (src/http/README.md, Agent headers). `confirmedAt`: null for a coupon that the
 * upstream has not seen yet.
 */
export function provenanceNow(
  { clock, settings }: { clock: Pick<Clock, 'now'>; settings: () => Pick<AgentSettings, 'freshness'> },
  { confirmedAt, pending, cache }: Pick<AgentProvenance, 'confirmedAt' | 'pending' | 'cache'>,
): AgentProvenance {
  if (confirmedAt === null) {
    return { freshness: 'provisional', confirmedAt, graceUntil: null, pending, cache, ageMs: 0 };
  }
  const { freshness } = settings();
  const now = clock.now();
  return {
    freshness: freshnessAt(confirmedAt, freshness, now),
    confirmedAt,
    graceUntil: confirmedAt + freshness.graceMs,
    pending,
    cache,
    ageMs: Math.max(0, now - confirmedAt),
  };
}
