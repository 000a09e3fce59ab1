import type { AgentUnavailableError, ProblemError } from './error.ts';

/** A license as the agent returns it (specification 2.2). */
export interface License {
  readonly licenseKey: string;
  /** The product that the key was sold for. */
  readonly productKey: string;
  readonly buyerEmail: string;
  readonly enabled: boolean;
  /** The number of uses, including uses that the store has not confirmed yet. */
  readonly uses: number;
  /** The date of the purchase. Trial periods start on this date. */
  readonly date: Date;
  /** What the license unlocks, sorted. Empty: the seller has named nothing. */
  readonly entitlements: readonly string[];
  /** The last instant at which the license is valid. Null: it has no end. */
  readonly expiresAt: Date | null;
  /** Until when its seller still lets it work after `expiresAt`. Null: no longer. */
  readonly graceUntil: Date | null;
  /** `grace`: the license has ended, and its seller still lets it work. `expired`: it has ended, and is not enabled. */
  readonly status: 'active' | 'grace' | 'expired' | 'disabled';
}

/**
 * How recently the store confirmed the answer (README, What it answers). `authoritative`: the program that
 * answers is the store itself.
 */
export type Freshness = 'authoritative' | 'fresh' | 'stale' | 'grace';

/** How far an answer can be trusted. */
export interface Provenance {
  readonly freshness: Freshness;
  /** When the store last confirmed the key. Null: the program that answers is the store itself. */
  readonly confirmedAt: Date | null;
  /** Until when the agent answers for the key without the store. Null: the program that answers is the store itself. */
  readonly graceUntil: Date | null;
  /** The number of changes to the key that the store has not confirmed yet. */
  readonly pending: number;
}

/** A license after a change. */
export interface ChangedLicense extends Provenance {
  readonly license: License;
}

/** Where a verdict comes from: the agent, or the file with its last verdicts (`LastKnown`). */
export type VerdictSource = 'agent' | 'last_known';

/** The key may be used. */
export interface Valid extends Provenance {
  readonly verdict: 'valid';
  readonly license: License;
  readonly source: VerdictSource;
}

/** The key was disabled, or its purchase was refunded. */
export interface Disabled {
  readonly verdict: 'refused';
  readonly reason: 'disabled';
  readonly license: License;
  readonly source: VerdictSource;
}

/** This product has no such key. A store gives the same answer for another product's key and for an unknown key. */
export interface NotFound {
  readonly verdict: 'refused';
  readonly reason: 'not_found';
  readonly license: null;
  readonly source: VerdictSource;
}

/**
 * The answer is not known now. This is not a "no".
 *
 * - `agent_unavailable`: the agent did not answer in time.
 * - `unknown`: the agent never saw the key, and the store is unavailable.
 * - `expired`: the store confirmed the key too long ago.
 * - `busy`: the agent asks the caller to try again later.
 */
export interface Undetermined {
  readonly verdict: 'undetermined';
  readonly reason: 'agent_unavailable' | 'unknown' | 'expired' | 'busy';
  readonly license: null;
  readonly error: AgentUnavailableError | ProblemError | null;
}

/** The answer to "may this license key be used?". */
export type Verdict = Valid | Disabled | NotFound | Undetermined;

/** What a customer is about to buy. Amounts are in cents. */
export interface Cart {
  /** The coupon's code. */
  readonly code: string;
  /** ISO 4217. */
  readonly currency?: string | undefined;
  readonly items: readonly CartItem[];
}

export interface CartItem {
  readonly productKey: string;
  /** The price of one piece, in cents. */
  readonly amount: number;
  /** Default: 1. */
  readonly quantity?: number | undefined;
  /** The collections of the product. An agent has no catalogue, so the cart has to name them. */
  readonly collectionIds?: readonly string[] | undefined;
  /** Whether the price is charged repeatedly. */
  readonly recurring?: boolean | undefined;
}

/** What a coupon takes off a cart. Amounts are in cents. */
export interface Quote {
  readonly code: string;
  readonly couponId: number | null;
  readonly redeemable: boolean;
  /** Why the coupon is not redeemable, such as `ended` or `minimum_not_met`. */
  readonly reasons: readonly string[];
  readonly subtotal: number;
  readonly eligibleSubtotal: number;
  readonly discount: number;
  readonly total: number;
  readonly items: readonly QuotedItem[];
  /** `this_agent`: the quote counts only the redemptions that this agent knows. */
  readonly scope: 'everywhere' | 'this_agent';
}

export interface QuotedItem {
  readonly productKey: string;
  readonly amount: number;
  readonly quantity: number;
  readonly discount: number;
}

/** A quote that an order has redeemed. */
export interface Redemption extends Quote {
  readonly order: string;
  readonly redeemedAt: Date;
}
