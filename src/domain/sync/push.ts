import type { CouponTerms } from '../checkout/coupon.ts';
import type { Cart, Quote, QuoteReason } from '../checkout/quote.ts';
import { isLicenseKind, type LicenseOperationKind, type OperationKind } from '../outbox/operation.ts';
import type { ProblemCode } from '../problem/problem-table.ts';
import type { Scope, Tenant } from '../access/principal.ts';
import { dayMs } from '../time.ts';
import type { Rate } from '../token-bucket.ts';

const hourMs = 3_600_000;

/*
 * A push is one numbered request of an agent with the changes that its callers have made (src/sync/README.md, Between
 * Latchkeys). A reach is what a credential can change: an account, or a product of an account.
 */

/** What a credential of an agent changes: a product by its secret, or null: coupons by the API key. */
export type Reach = string | null;

/** The version of the protocol. */
export const syncProtocol = 1;

/** The limits of one request. */
export const maxOperations = 500;
export const maxPushBytes: number = 256 * 1024;
export const maxPushReplyBytes: number = 64 * 1024;
export const maxFollowed = 1_000;
/** The most missing license keys that one request watches. */
export const maxWatched = 50;

/** How many changes of all licenses one read of a follower looks through. A longer read would delay others. */
export const changesPerRead = 500;

/** The longest wait for a change, in seconds. */
export const maxWaitS = 25;

/** The limits of the store. */
export const maxKeysPerAgent = 100_000;
export const maxAgentsPerReach = 100_000;

/**
 * How often a credential may begin another follower. In the time in which a follower counts as idle, one credential cannot
 * begin as many as a reach may have.
 */
export const newFollowerRate: Rate = { perSecond: 10, burst: 1_000 };
export const idleAfterMs: number = 2 * hourMs;

/** For how long the outcomes of operations and the changes of followed keys are kept. A follower may be silent for as long. */
export const syncRetentionMs: number = 30 * dayMs;

/** An agent is noted as seen at most once in this time, in ms, so that most requests write nothing. */
export const seenEveryMs: number = hourMs;

/** The scope that a credential needs for operations of a kind. */
export const scopeOfKind: Readonly<Record<OperationKind, Scope>> = {
  usage: 'use',
  decrease: 'use',
  disable: 'manage',
  enable: 'manage',
  create_coupon: 'coupons:write',
  redeem: 'coupons:write',
  void: 'coupons:write',
};

/** `id`: UUIDv7 of the operation, the same in each push that has the operation. `at`: when it was requested (epoch ms). */
type Pushed<Kind extends OperationKind, Payload> = { id: string; kind: Kind; at: number } & Payload;

export type PushedLicenseChange = Pushed<
  LicenseOperationKind,
  {
    licenseKey: string;
    /** For an enable: whether its caller saw the license as enabled. Then a disable came from elsewhere, and wins. */
    seenEnabled: boolean;
  }
>;

export type PushedRedemption = Pushed<
  'redeem',
  {
    order: string;
    cart: Cart;
    /** The caller was answered without the authority, so `usage_limit` does not refuse the redemption. */
    provisional: boolean;
    /** The discount of each line in the answer to the caller; null: none. */
    discounts: readonly number[] | null;
  }
>;

export type PushedCoupon = Pushed<'create_coupon', { terms: CouponTerms }>;
export type PushedVoid = Pushed<'void', { order: string }>;

export function isLicenseChange(
  operation: PushedOperation | MalformedOperation,
): operation is PushedLicenseChange {
  return operation.kind !== null && isLicenseKind(operation.kind);
}

export type PushedOperation = PushedLicenseChange | PushedCoupon | PushedRedemption | PushedVoid;

/** An operation that cannot be read. */
export type MalformedOperation = { id: string | null; kind: null };

export type OperationOutcome = 'applied' | 'refused' | 'conflicted';

export type OperationResult =
  | {
      outcome: 'applied';
      /** The coupon that was created. */
      couponId?: number;
      /** The redemption goes beyond the coupon's `usage_limit`. */
      overLimit?: true;
      /** The quote of the redemption, if the agent has quoted something else; null: it is too long for the reply. */
      quote?: Quote | null;
    }
  | { outcome: 'refused'; code: ProblemCode; reasons?: readonly QuoteReason[] }
  | {
      outcome: 'conflicted';
      /** `revoked`: the license was disabled since the caller of the enable saw it. */
      code: ProblemCode | 'revoked';
    };

/**
 * Refusals that say nothing about the operation: the license key is not known here, or not yet. The agent reads the key, and
 * sends the operation again.
 */
const undecided: ReadonlySet<string> = new Set<ProblemCode>(['license_not_found', 'upstream_unreachable']);

/** Whether the operation may be applied when it is sent again. */
export function isUndecided({ outcome, code }: { outcome: OperationOutcome; code?: string }): boolean {
  return outcome === 'refused' && code !== undefined && undecided.has(code);
}

/** A result as an agent reads it: a newer upstream may have other codes and reasons. */
export type PushedResult =
  | Extract<OperationResult, { outcome: 'applied' }>
  | { outcome: 'refused' | 'conflicted'; code: string; reasons?: readonly string[] };

/** The longest result without quote and reasons, in bytes, with room. */
const plainResultBytes = 64;

/** What else a reply has room for. */
const extraBytes = maxPushReplyBytes - maxOperations * plainResultBytes;

/** Leaves out quotes and reasons that would make a reply too long. */
export function fitReply(results: readonly OperationResult[]): OperationResult[] {
  let left = extraBytes;
  const fits = (extra: unknown): boolean => {
    // Names of members are longer on the wire.
    left -= 2 * JSON.stringify(extra).length + new TextEncoder().encode(JSON.stringify(extra)).length;
    return left >= 0;
  };
  return results.map((result) => {
    if (result.outcome === 'refused' && result.reasons !== undefined && !fits(result.reasons)) {
      return { outcome: result.outcome, code: result.code };
    }
    const isLong = result.outcome === 'applied' && (result.quote ?? null) !== null;
    return isLong && !fits(result.quote) ? { ...result, quote: null } : result;
  });
}

/** The scopes that a push needs. */
export function scopesOf(operations: readonly Pick<PushedOperation | MalformedOperation, 'kind'>[]): Scope[] {
  return [...new Set(operations.flatMap(({ kind }) => (kind === null ? [] : [scopeOfKind[kind]])))];
}

/** Names the reach of a credential. Two reaches never have the same name. */
export function reachOf({ accountId, productKey }: Tenant): string {
  const names = productKey === null ? [accountId] : [accountId, productKey];
  return names.map(encodeURIComponent).join('/');
}

/** The part of an epoch that names the store: a restored store keeps it. */
export function storeOf(epoch: string): string {
  return epoch.slice(0, 16);
}

/** The time in a UUIDv7 (epoch ms). */
export function timeOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}
