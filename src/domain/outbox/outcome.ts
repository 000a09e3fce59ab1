/** Why a request certainly changed nothing at the upstream. */
export type NotAppliedReason =
  /** Nothing was sent (name resolution, connection refused, TLS), or the request came back to this agent. */
  | 'unreachable'
  /** A firewall asked for a proof that we are human: nothing reached the upstream. */
  | 'challenged'
  /**
   * 400, 422: the upstream will never accept the request. The operation is not sent again: it is dead, or held if an
   * earlier attempt may have been applied.
   */
  | 'refused'
  /** 404: the upstream does not know the license key or coupon. */
  | 'missing'
  /** 401, 403. */
  | 'unauthorized'
  /** 429. */
  | 'throttled'
  /** 4xx from a cache on the way: it says nothing about the upstream now. */
  | 'cached'
  /**
   * Any other 4xx with a JSON object as its body, such as 409. A license change is sent again later; the creation of a
   * coupon ends as with `refused`. Also: the list of coupons cannot be read completely.
   */
  | 'rejected';

/** The request changed nothing at the upstream. */
export type NotApplied = {
  outcome: 'not_applied';
  reason: NotAppliedReason;
  /** HTTP status; null if there was no response. */
  status: number | null;
  /** Status and message, for the log and the outbox. */
  detail: string;
  /** The upstream's own message; absent if there was none. */
  message?: string;
  retryAfterMs: number | null;
  /** Present if the request was not sent because nothing may be sent now. This does not count as a failure. */
  isHeldBack?: true;
};

/** It is unknown whether the request was applied. */
export type Ambiguous = {
  outcome: 'ambiguous';
  /** HTTP status; null if no complete response came. */
  status: number | null;
  detail: string;
  retryAfterMs: number | null;
  /** Present if the response was longer than the limit. */
  isTooLarge?: true;
};

/** A valid response of the upstream says that the request was applied. */
export type Applied<Value> = {
  outcome: 'applied';
  value: Value;
  /** When the upstream confirmed the value (epoch ms). */
  confirmedAt: number;
  /** A cache answered a read. Callers may see the value, but it is never the base of a send or a reconciliation. */
  isCached: boolean;
  /** The instance that answered, if the upstream is Latchkey. */
  instance?: string;
  /** The cursor of the next page of a list, if the upstream is Latchkey and has more. */
  nextCursor?: string;
  /** Present if the upstream is an agent with undelivered changes to this record. */
  isPending?: true;
};

/** The outcome of a request to the upstream. */
export type Outcome<Value> = Applied<Value> | NotApplied | Ambiguous;

/** Whether the upstream could not be reached or could not answer (it did not refuse). */
export function isOutage(outcome: Outcome<unknown>): outcome is Ambiguous | NotApplied {
  return outcome.outcome === 'ambiguous' || (outcome.outcome === 'not_applied' && !isRefused(outcome));
}

/** Whether the upstream refused a request, as opposed to never receiving it. */
export function isRefused({ reason }: NotApplied): boolean {
  return reason !== 'unreachable' && reason !== 'challenged';
}

/** Whether the upstream itself answered: a cache or a firewall is not the upstream. */
export function isResponse(outcome: Outcome<unknown>): boolean {
  if (outcome.outcome === 'applied') return !outcome.isCached;
  if (outcome.outcome === 'ambiguous' || outcome.status === null) return false;
  return isRefused(outcome) && outcome.reason !== 'cached';
}

/** Whether the upstream does not know the key or coupon. */
export function isMissing(outcome: Outcome<unknown>): boolean {
  return outcome.outcome === 'not_applied' && outcome.reason === 'missing';
}

/** Whether the upstream applied the request, or answered that the key or coupon does not exist. */
export function isSuccess(outcome: Outcome<unknown>): boolean {
  return isResponse(outcome) && (outcome.outcome === 'applied' || isMissing(outcome));
}

/** The outcome of a request that was held back. */
export function heldBack(reason: NotAppliedReason, detail: string): NotApplied {
  return { ...notApplied(reason, detail), isHeldBack: true };
}

/** Whether a request was held back. */
export function isHeldBack(outcome: Outcome<unknown>): boolean {
  return outcome.outcome === 'not_applied' && outcome.isHeldBack === true;
}

/** The outcome of a request that was certainly not applied and has no response. */
export function notApplied(reason: NotAppliedReason, detail: string): NotApplied {
  return { outcome: 'not_applied', reason, status: null, detail, retryAfterMs: null };
}
